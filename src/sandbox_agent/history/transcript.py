"""A session's history as a file: JSONL with the envelopes as they went over the wire, or Markdown to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, iso_time, json_text, meta_value
from sandbox_agent.core.methods import (
    PERMISSION,
    PROMPT,
    QUESTION,
    RUNTIME_ERROR,
    SESSION_CANCEL,
    SESSION_ENDED,
    UNPARSED,
    UPDATE,
)
from sandbox_agent.history.entries import Envelope, HistoryEntry, OpenRequests, read_envelope
from sandbox_agent.history.markdown import code_span, fenced, inline, quoted, render_tool
from sandbox_agent.history.version_1 import AsVersion1

OPEN_TOOLS = 1000
"""Tool calls that may wait for their end at once; past it the oldest is written as it stands."""


def jsonl_line(entry: HistoryEntry) -> bytes:
    """One line with its newline. The envelope is not decoded; line breaks in it become spaces."""
    envelope = entry.envelope.strip().replace(b"\r", b" ").replace(b"\n", b" ")
    source = msgspec.json.encode(entry.source)
    time = iso_time(entry.time).encode()
    return b'{"sequence":%d,"time":"%s","source":%s,"envelope":%s}\n' % (
        entry.sequence,
        time,
        source,
        envelope,
    )


class TranscriptHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the Markdown says of the session before its first turn."""

    session_id: str
    agent: str
    title: str | None = None
    cwd: str | None = None
    created: float | None = None


class MarkdownTranscript:
    """Feed it the history in order and write out the pieces; `finish` gives the last.

    A piece comes when a stretch of text or a tool call ends, so no more than that is held in memory."""

    def __init__(self, head: TranscriptHead) -> None:
        self._pieces: list[str] = [_render_head(head)]
        self._requests = OpenRequests()
        self._tools: dict[str, Object] = {}
        self._speaker = ""
        self._said: list[str] = []
        self._turns = 0
        self._has_open_turn = False
        self._reader = AsVersion1(is_gathered=True)
        self._last: HistoryEntry | None = None

    def feed(self, entry: HistoryEntry) -> str:
        self._last = entry
        for read in self._reader.feed(entry):
            self._read(read)
        return self._take()

    def _read(self, entry: HistoryEntry) -> None:
        envelope = read_envelope(entry.envelope)
        if envelope is None:
            return
        if envelope.method is not None:
            write = self._METHODS.get(envelope.method)
            opened = write(self, entry, envelope) if write else None
            if envelope.id is not None:
                self._requests.add(entry.source, envelope, (envelope.method, opened))
        elif envelope.id is not None:
            request = self._requests.take(entry.source, envelope)
            write_answer = self._ANSWERS.get(request[0]) if request else None
            if write_answer is not None:
                write_answer(self, entry, request[1], envelope)
            elif request is not None and entry.source != "client":
                self._error(envelope.error)

    def finish(self) -> str:
        for read in self._reader.finish(self._last):
            self._read(read)
        self._close()
        return self._take()

    def _take(self) -> str:
        pieces, self._pieces = self._pieces, []
        return "".join(pieces)

    def _write(self, block: str) -> None:
        self._hush()
        self._pieces.append(f"{block.rstrip(chr(10))}\n\n")

    def _say(self, speaker: str, text: str) -> None:
        if speaker != self._speaker:
            self._hush()
            self._speaker = speaker
        self._said.append(text)

    def _hush(self) -> None:
        """Write the stretch of text that has been gathered."""
        said, self._said = "".join(self._said), []
        speaker, self._speaker = self._speaker, ""
        if said.strip():
            self._pieces.append(f"**{speaker}**\n\n{quoted(said)}\n")

    def _close(self) -> None:
        self._hush()
        for call_id in list(self._tools):
            self._write(render_tool(self._tools.pop(call_id)))

    def _prompt(self, entry: HistoryEntry, request: Envelope) -> None:
        self._close()
        self._turns += 1
        self._has_open_turn = True
        self._write(f"## Turn {self._turns}\n\n*{iso_time(entry.time)}*")
        user = as_text(meta_value(request.params, "user"))
        for block in as_list(request.params.get("prompt")):
            self._say(f"User ({inline(user)})" if user else "User", _block_text(block))
        self._hush()

    def _prompt_answered(self, entry: HistoryEntry, _: Any, answer: Envelope) -> None:
        self._close()
        self._has_open_turn = False
        self._error(answer.error)
        reason = "error" if answer.error is not None else as_text(as_object(answer.result).get("stopReason"))
        self._write(f"*Turn ended: {inline(reason) or 'no reason given'}, {iso_time(entry.time)}*")

    def _update(self, _: HistoryEntry, notice: Envelope) -> None:
        update = as_object(notice.params.get("update"))
        kind = as_text(update.get("sessionUpdate"))
        if kind == "agent_message_chunk":
            self._say("Agent", _block_text(update.get("content")))
        elif kind == "agent_thought_chunk":
            self._say("Thought", _block_text(update.get("content")))
        elif kind == "user_message_chunk" and not self._has_open_turn:
            self._say("User", _block_text(update.get("content")))
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(update)
        elif kind == "plan":
            self._plan(as_list(update.get("entries")))

    def _tool(self, update: Object) -> None:
        self._hush()
        call_id = as_text(update.get("toolCallId"))
        call = self._tools.setdefault(call_id, {})
        call.update({name: value for name, value in update.items() if value is not None})
        if update.get("status") in ("completed", "failed") or len(self._tools) > OPEN_TOOLS:
            done = call_id if update.get("status") in ("completed", "failed") else next(iter(self._tools))
            self._write(render_tool(self._tools.pop(done)))

    def _plan(self, entries: list[Any]) -> None:
        rows = []
        for entry in map(as_object, entries):
            status = as_text(entry.get("status"))
            box = "x" if status == "completed" else " "
            note = " (in progress)" if status == "in_progress" else ""
            rows.append(f"- [{box}] {inline(as_text(entry.get('content')))}{note}\n")
        if rows:
            self._write(f"**Plan**\n\n{''.join(rows)}")

    def _permission(self, _: HistoryEntry, request: Envelope) -> Object:
        call = as_object(request.params.get("toolCall"))
        known = self._tools.get(as_text(call.get("toolCallId")), {})
        title = call.get("title") or known.get("title") or call.get("toolCallId")
        kind = call.get("kind") or known.get("kind") or "other"
        self._write(f"**Permission asked:** {inline(as_text(title))} ({code_span(as_text(kind))})")
        return {"title": title, "options": request.params.get("options")}

    def _permission_answered(self, entry: HistoryEntry, asked: Object, answer: Envelope) -> None:
        result = as_object(answer.result)
        outcome = as_object(result.get("outcome"))
        chosen = outcome.get("optionId")
        option = next((o for o in map(as_object, as_list(asked["options"])) if o.get("optionId") == chosen), {})
        said = as_text(option.get("name") or chosen or outcome.get("outcome") or "error")
        kind = f" ({code_span(as_text(option['kind']))})" if option.get("kind") else ""
        user = inline(as_text(meta_value(result, "user"))) or "a client"
        by = "automatically by the server" if entry.source == "server" else f"by {user}"
        reason = as_text(meta_value(result, "reason"))
        because = f": {inline(reason)}" if reason else ""
        about = inline(as_text(asked["title"]))
        self._write(f"**Permission answered** {by}, {about}: {inline(said)}{kind}{because}")

    def _question(self, _: HistoryEntry, request: Envelope) -> None:
        options = [as_object(o).get("label", o) for o in as_list(request.params.get("options"))]
        listed = "".join(f"- {inline(as_text(option)) or '(none)'}\n" for option in options)
        self._write(f"**Question**\n\n{quoted(as_text(request.params.get('prompt')))}\n{listed}")

    def _question_answered(self, _: HistoryEntry, __: Any, answer: Envelope) -> None:
        result = as_object(answer.result)
        said = meta_value(result, "answers") or result.get("answers") or result.get("outcome") or "error"
        user = inline(as_text(meta_value(result, "user")))
        self._write(f"**Question answered{f' by {user}' if user else ''}:** {code_span(as_text(said))}")

    def _cancelled(self, _: HistoryEntry, notice: Envelope) -> None:
        user = inline(as_text(meta_value(notice.params, "user")))
        if user:  # of others the end of the turn tells as much
            self._write(f"**Cancelled** by {user}")

    def _ended(self, _: HistoryEntry, notice: Envelope) -> None:
        self._close()
        params = notice.params
        message = f": {inline(as_text(params['message']))}" if params.get("message") else ""
        self._write(f"**Session ended:** {inline(as_text(params.get('reason')))}{message}")

    def _runtime_error(self, _: HistoryEntry, notice: Envelope) -> None:
        self._error(notice.params)

    def _error(self, error: Object | None) -> None:
        if error is None:
            return
        details = error.get("data", error.get("details"))
        block = f"\n\n{fenced(json_text(details, indent=2), 'json')}" if details is not None else ""
        code = f" {code_span(as_text(error['code']))}" if "code" in error else ""
        self._write(f"**Error**{code} {inline(as_text(error.get('message')))}{block}")

    def _unparsed(self, _: HistoryEntry, notice: Envelope) -> None:
        self._write(f"**Unreadable line from the agent:** {inline(as_text(notice.params.get('error')))}")

    _METHODS: ClassVar[dict[str, Callable[[MarkdownTranscript, HistoryEntry, Envelope], Any]]] = {
        PROMPT: _prompt,
        UPDATE: _update,
        PERMISSION: _permission,
        QUESTION: _question,
        SESSION_CANCEL: _cancelled,
        SESSION_ENDED: _ended,
        RUNTIME_ERROR: _runtime_error,
        UNPARSED: _unparsed,
    }
    _ANSWERS: ClassVar[dict[str, Callable[[MarkdownTranscript, HistoryEntry, Any, Envelope], None]]] = {
        PROMPT: _prompt_answered,
        PERMISSION: _permission_answered,
        QUESTION: _question_answered,
    }


def _render_head(head: TranscriptHead) -> str:
    rows = [
        ("Session", head.session_id),
        ("Agent", head.agent),
        ("Directory", head.cwd),
        ("Created", None if head.created is None else iso_time(head.created)),
    ]
    facts = "".join(f"- {name}: {code_span(value)}\n" for name, value in rows if value)
    return f"# {inline(head.title or '') or 'Session'}\n\n{facts}\n"


def _block_text(block: Any) -> str:
    """Text as it is; anything else as a short note of what was there."""
    block = as_object(block)
    if block.get("type") == "text":
        return as_text(block.get("text"))
    resource = as_object(block.get("resource"))
    name = as_text(block.get("name") or block.get("uri") or resource.get("uri") or block.get("mimeType"))
    label = as_text(block.get("type")) or "content"
    text = resource.get("text")
    body = f"\n{fenced(text)}" if isinstance(text, str) else "\n"
    return f"\n*{inline(label)}* {code_span(name)}\n{body}"
