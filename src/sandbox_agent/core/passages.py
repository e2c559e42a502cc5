"""The words of a history that a person may look for: prompts, messages, thoughts, titles of tool calls and sessions.

What tools put out is not among them: most of the bytes, and little of what anybody remembers of a conversation.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from sandbox_agent.core.json_values import as_list, as_object, read_json
from sandbox_agent.core.methods import PROMPT, UPDATE

PassageKind = Literal["prompt", "message", "thought", "tool", "title"]
LONGEST = 16_000
"""Characters of a passage; what goes on longer goes on in another."""
_FIRST_WORDS = 120

_CHUNKS: dict[str, PassageKind] = {
    "user_message_chunk": "prompt",
    "agent_message_chunk": "message",
    "agent_thought_chunk": "thought",
}
_TITLED: dict[str, PassageKind] = {"tool_call": "tool", "tool_call_update": "tool", "session_info_update": "title"}
_WITHOUT_CONTROLS = {code: " " for code in range(32) if chr(code) not in "\n\t"}
_HINTS = (b"_chunk", b"session/prompt", b"tool_call", b"session_info_update")


class Passage(msgspec.Struct, frozen=True):
    """A stretch of text that belongs together, said by the entries from `first` to `last`. `time` is the first's."""

    kind: PassageKind
    first: int
    last: int
    time: float
    text: str


class _Update(msgspec.Struct):
    kind: str = msgspec.field(name="sessionUpdate", default="")
    content: msgspec.Raw = msgspec.Raw(b"null")
    title: Any = None
    message: Any = msgspec.field(name="messageId", default=None)


class _Params(msgspec.Struct):
    update: _Update | None = None
    prompt: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    method: str = ""
    params: _Params | None = None


_decode = msgspec.json.Decoder(_Line).decode


class PassageReader:
    """Feed it a history in order, and take what it has made of it.

    `open_` is the newest passage of what was read before: where the history goes on with it, `take` gives it
    again, longer.
    """

    def __init__(self, open_: Passage | None = None) -> None:
        self._closed: list[Passage] = []
        self._open = open_
        self._pieces: list[str] = []
        self._size = len(open_.text) if open_ else 0
        self._last = open_.last if open_ else 0
        self._message: Any = None

    def feed(self, sequence: int, time: float, line: bytes) -> None:
        if not any(hint in line for hint in _HINTS):
            return
        try:
            message = _decode(line)
        except (ValueError, RecursionError):
            self._feed_strange(sequence, time, line)
            return
        params = message.params
        if params is None:
            return
        if message.method == PROMPT:
            self._begin("prompt", sequence, time, _blocks_text(read_json(bytes(params.prompt))))
        elif message.method == UPDATE and params.update is not None:
            self._update(sequence, time, params.update)

    def take(self) -> list[Passage]:
        """The passages since the last time, the newest of which may grow yet."""
        self._settle()
        taken, self._closed = self._closed, []
        return taken if self._open is None else [*taken, self._open]

    def _feed_strange(self, sequence: int, time: float, line: bytes) -> None:
        """A line that is not as it should be: half a surrogate pair, or members of a wrong type."""
        found = as_object(read_json(line))
        params = as_object(found.get("params"))
        if found.get("method") == PROMPT:
            self._begin("prompt", sequence, time, _blocks_text(params.get("prompt")))
        elif found.get("method") == UPDATE:
            update = as_object(params.get("update"))
            kind = update.get("sessionUpdate")
            content = msgspec.Raw(msgspec.json.encode(update.get("content")))
            if isinstance(kind, str):
                self._update(sequence, time, _Update(kind, content, update.get("title"), update.get("messageId")))

    def _update(self, sequence: int, time: float, update: _Update) -> None:
        kind = _CHUNKS.get(update.kind)
        if kind is not None:
            text = _block_text(read_json(bytes(update.content)))
            if text:
                self._say(kind, sequence, time, text, update.message)
            return
        titled = _TITLED.get(update.kind)
        if titled is not None and isinstance(update.title, str):
            title = update.title[:LONGEST].translate(_WITHOUT_CONTROLS)
            self._settle()
            if self._open is None or (self._open.kind, self._open.text) != (titled, title):
                self._begin(titled, sequence, time, title)

    def _say(self, kind: PassageKind, sequence: int, time: float, text: str, message: Any) -> None:
        is_other = message is not None and self._message is not None and message != self._message
        if self._open is None or self._open.kind != kind or is_other:
            self._begin(kind, sequence, time, text)
        elif kind == "prompt" and text in self._open.text:
            return  # an agent that repeats what it was asked
        else:
            self._pieces.append(text)
            self._size += len(text)
            self._last = sequence
            if self._size > LONGEST:
                self._cut(sequence, time)
        self._message = message

    def _begin(self, kind: PassageKind, sequence: int, time: float, text: str) -> None:
        self._close()
        if not text.strip():
            return
        self._open = Passage(kind, sequence, sequence, time, text)
        self._size, self._last = len(text), sequence
        if self._size > LONGEST:
            self._cut(sequence, time)

    def _cut(self, sequence: int, time: float) -> None:
        """Close full passages between words, and go on with the rest."""
        self._settle()
        while self._open is not None and len(self._open.text) > LONGEST:
            whole, text = self._open, self._open.text
            at = max(text.rfind(" ", LONGEST // 2, LONGEST), text.rfind("\n", LONGEST // 2, LONGEST)) + 1 or LONGEST
            self._closed.append(msgspec.structs.replace(whole, text=text[:at]))
            self._open = Passage(whole.kind, sequence, sequence, time, text[at:])
        self._size = len(self._open.text) if self._open else 0

    def _settle(self) -> None:
        """Put together what was said of the open passage."""
        if self._pieces and self._open is not None:
            text = self._open.text + "".join(self._pieces)
            self._open = msgspec.structs.replace(self._open, text=text, last=self._last)
        self._pieces = []

    def _close(self) -> None:
        self._settle()
        if self._open is not None:
            self._closed.append(self._open)
        self._open, self._size, self._message = None, 0, None


def first_words(prompt: bytes) -> str:
    """How a prompt begins, in one line."""
    blocks = as_object(as_object(read_json(prompt)).get("params")).get("prompt")
    return " ".join(_blocks_text(blocks).split())[:_FIRST_WORDS]


def _blocks_text(blocks: Any) -> str:
    return "\n".join(filter(None, map(_block_text, as_list(blocks))))


def _block_text(block: Any) -> str:
    """Without control characters: they mean nothing to a reader, and something to those who keep and mark texts."""
    block = as_object(block)
    text = block.get("text")
    if not isinstance(text, str):
        text = block.get("name") or block.get("uri") or as_object(block.get("resource")).get("uri")
    return text.translate(_WITHOUT_CONTROLS) if isinstance(text, str) else ""
