"""A session's record read as if version 1 of ACP had been spoken throughout, for the folds that are written for it.

Which version an entry is of shows in the record itself: only version 2 acknowledges a prompt and tells of states."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.core import frames, versions
from sandbox_agent.core.json_values import Object, as_list, as_object, read_json
from sandbox_agent.core.methods import PERMISSION, PROMPT, UPDATE
from sandbox_agent.core.versions import HeldPrompt, UpdateTranslator, Version
from sandbox_agent.history.entries import HistoryEntry

_MARKS = (b'"state_update"', b'"user_message"', b'"agent_message"', b'"agent_thought"', b'"tool_call_content_chunk"')
_WHOLE = {
    "user_message_chunk": "user_message",
    "agent_message_chunk": "agent_message",
    "agent_thought_chunk": "agent_thought",
}


class ReadEntry(msgspec.Struct, frozen=True):
    """An entry of the record in the words of version 1."""

    sequence: int
    time: float
    source: str
    envelope: bytes


class AsVersion1:
    """Feed it the record in order. What was said in version 1 passes as it is, at the cost of a look at its bytes.

    With `is_gathered` messages, tool calls and plans come whole, when their turn is over or a question stands in it:
    whole messages replace, null clears, chunks are joined. Call `finish` at the end for what is left."""

    def __init__(self, *, is_gathered: bool = False) -> None:
        self._gathered = _Gathered() if is_gathered else None
        self._translator: UpdateTranslator | None = None
        self._prompt: Any = None
        self._held: HeldPrompt | None = None

    def feed(self, entry: HistoryEntry) -> list[HistoryEntry]:
        is_prompt = entry.source == "client" and b'"session/prompt"' in entry.envelope
        if self._translator is None and not is_prompt and not _is_version_2(entry):
            return [entry]
        message = read_json(entry.envelope)
        if not isinstance(message, dict):
            return [entry]
        method = message.get("method")
        if is_prompt and method == PROMPT:
            flushed = self._flushed(entry)
            self._prompt, self._held = message.get("id"), HeldPrompt()
            return [*flushed, entry]
        if self._translator is None:
            if not _is_version_2(entry):
                return [entry]
            self._translator = UpdateTranslator("", from_=Version.V2, to=Version.V1)
        if method is None:
            return self._answered(entry, message)
        if method == UPDATE:
            return self._updated(entry, as_object(message.get("params")))
        if method == PERMISSION:
            _, params = versions.ask(PERMISSION, message.get("params"), from_=Version.V2, to=Version.V1)
            line = frames.request(frames.member(entry.envelope, "id") or b"null", PERMISSION, params)
            return [*self._flushed(entry), _read(entry, line)]
        return [*self._flushed(entry), entry]

    def finish(self, last: HistoryEntry | None) -> list[HistoryEntry]:
        """What is left after the `last` entry."""
        return self._flushed(last) if last is not None else []

    def _answered(self, entry: HistoryEntry, answer: Object) -> list[HistoryEntry]:
        is_prompts = self._held is not None and entry.source != "client" and answer.get("id") == self._prompt
        if not is_prompts or self._held is None or "result" not in answer:
            return [*self._flushed(entry), entry]
        result = as_object(answer["result"])
        if "stopReason" in result and "messageId" not in result:  # the agent has changed to version 1
            flushed, self._translator, self._held = self._flushed(entry), None, None
            return [*flushed, entry]
        return self._ended(entry, self._held.acknowledged(result))

    def _updated(self, entry: HistoryEntry, params: Object) -> list[HistoryEntry]:
        update = as_object(params.get("update"))
        ended = self._held.update(update) if self._held is not None else None
        if self._gathered is not None and self._gathered.takes(update):
            return self._ended(entry, ended)
        return [*self._told(entry, params), *self._ended(entry, ended)]

    def _ended(self, entry: HistoryEntry, outcome: Object | None) -> list[HistoryEntry]:
        if outcome is None:
            return []
        flushed, self._held = self._flushed(entry), None
        line = frames.to_json({"jsonrpc": "2.0", "id": self._prompt, **outcome})
        return [*flushed, ReadEntry(entry.sequence, entry.time, "agent", line)]

    def _flushed(self, entry: HistoryEntry) -> list[HistoryEntry]:
        updates = self._gathered.take() if self._gathered is not None else []
        return [read for update in updates for read in self._told(entry, {"update": update})]

    def _told(self, entry: HistoryEntry, params: Object) -> list[HistoryEntry]:
        if self._translator is None:
            return []
        self._translator.is_replay = self._held is None  # without a prompt of ours, what the user said is news
        lines = (frames.notification(UPDATE, said) for said in self._translator.update(params))
        return [_read(entry, line) for line in lines]


class _Gathered:
    """Messages, tool calls and plans in the order in which they began, as they stand."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], Object] = {}

    def takes(self, update: Object) -> bool:
        """Whether the update was one to gather."""
        kind = update.get("sessionUpdate")
        if kind in _WHOLE or kind in _WHOLE.values():
            name = _WHOLE.get(str(kind), str(kind))
            item = self._item(name, update, "messageId")
            if kind == name:
                _patch(item, update)
            else:
                item.setdefault("content", []).append(update.get("content"))
        elif kind == "tool_call_update":
            _patch(self._item("tool_call_update", update, "toolCallId"), update)
        elif kind == "tool_call_content_chunk":
            item = self._item("tool_call_update", update, "toolCallId")
            item.setdefault("content", []).append(update.get("content"))
        elif kind in ("plan_update", "plan_removed"):
            key = ("plan_update", str(as_object(update.get("plan", update)).get("planId")))
            self._items.pop(key, None)
            if kind == "plan_update":
                self._items[key] = update
        else:
            return False
        return True

    def take(self) -> list[Object]:
        items, self._items = self._items, {}
        return list(items.values())

    def _item(self, kind: str, update: Object, name: str) -> Object:
        key = str(update.get(name))
        return self._items.setdefault((kind, key), {"sessionUpdate": kind, name: update.get(name)})


def _patch(item: Object, update: Object) -> None:
    """Members that the update names replace those of before; null clears."""
    for name, value in update.items():
        if value is None:
            item.pop(name, None)
        else:
            item[name] = list(as_list(value)) if name == "content" else value


def _is_version_2(entry: HistoryEntry) -> bool:
    """Whether an entry can only be of version 2; one that merely talks of such words is looked at more closely."""
    envelope = entry.envelope
    if entry.source == "client" or not (any(mark in envelope for mark in _MARKS) or b'"messageId"' in envelope):
        return False
    message = as_object(read_json(envelope))
    if "method" not in message:
        result = as_object(message.get("result"))
        return isinstance(result.get("messageId"), str) and "stopReason" not in result
    kind = as_object(as_object(message.get("params")).get("update")).get("sessionUpdate")
    return isinstance(kind, str) and f'"{kind}"'.encode() in _MARKS


def _read(entry: HistoryEntry, envelope: bytes) -> HistoryEntry:
    return ReadEntry(entry.sequence, entry.time, entry.source, envelope)
