"""The assistant's message that grows during a turn: its text, thoughts and tool calls as parts."""

from __future__ import annotations

from typing import Any, Literal

from sandbox_agent.core.json_values import Object, as_object
from sandbox_agent.history.opencode.blocks import part_of
from sandbox_agent.history.opencode.ids import Ids
from sandbox_agent.history.opencode.limits import OUTPUT_CHARS, TEXT_CHARS, TOOLS
from sandbox_agent.history.opencode.telling import Telling, milliseconds
from sandbox_agent.history.opencode.tools import ToolPart

Speech = Literal["text", "reasoning"]


class Usage:
    """Tokens and cost, as far as the agent tells of them."""

    def __init__(self) -> None:
        self.cost = 0.0
        self._used: int | None = None
        self._spent: Object = {}

    def update(self, update: Object) -> None:
        """ACP's `usage_update`: how full the context is."""
        self._used = _count(update.get("used"))
        amount = as_object(update.get("cost")).get("amount")
        if isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 0:
            self.cost = float(amount)

    def answered(self, usage: Object) -> None:
        """The usage in the answer to a prompt: what the turn took."""
        self._spent = usage

    def tokens(self) -> Object:
        """OpenCode shows their sum as the size of the context, where there is any output."""
        read, written = _count(self._spent.get("cachedReadTokens")), _count(self._spent.get("cachedWriteTokens"))
        output, thought = _count(self._spent.get("outputTokens")), _count(self._spent.get("thoughtTokens"))
        given = _count(self._spent.get("inputTokens"))
        if self._used is not None:
            output = min(output or 1, self._used)
            thought = min(thought, self._used - output)
            given, read, written = self._used - output - thought, 0, 0
        return {"input": given, "output": output, "reasoning": thought, "cache": {"read": read, "write": written}}

    def with_total(self) -> Object:
        """The same as messages have it."""
        tokens = self.tokens()
        parts = (tokens["input"], tokens["output"], tokens["reasoning"], *tokens["cache"].values())
        return {"total": sum(parts), **tokens}


class AssistantTurn:
    """`info` is the message without its parts. `prompt` is the JSON-RPC id of the prompt, None where there was none."""

    def __init__(self, telling: Telling, ids: Ids, info: Object, *, has_prompt: bool) -> None:
        self.info = info
        self.id: str = info["id"]
        self.has_prompt = has_prompt
        self.is_cancelled = False
        self.usage = Usage()
        self.tools: dict[str, ToolPart] = {}
        self._telling = telling
        self._ids = ids
        self._open: _Speaking | None = None
        self._terminals: dict[str, str] = {}

    def begin(self, time: float) -> None:
        self._telling.message(self.info)
        self._tell_part({"type": "step-start"}, time)

    def say(self, kind: Speech, update: Object, time: float) -> None:
        """A chunk of text or thought; one that follows another of the same message goes on in its part."""
        block = as_object(update.get("content"))
        if block.get("type") != "text":
            self.hush(time)
            if block:
                self._tell_part(part_of(block), time)
            return
        text, message = str(block.get("text") or ""), update.get("messageId")
        speaking = self._open
        if speaking is None or speaking.kind != kind or speaking.message != message or speaking.is_full:
            self.hush(time)
            speaking = self._open = _Speaking(kind, message, self._new_part(kind, time), milliseconds(time))
            self._telling.part(speaking.part(), milliseconds(time))
        if text:
            speaking.add(text)
            self._telling.delta(self.id, speaking.id, text)

    def hush(self, time: float) -> None:
        """The stretch of text or thought is over."""
        speaking, self._open = self._open, None
        if speaking is not None:
            self._telling.part(speaking.part(end=milliseconds(time)), milliseconds(time))

    def tool(self, update: Object, call_id: str, time: float) -> ToolPart:
        """The tool call with this update; one that nobody announced begins here."""
        now = milliseconds(time)
        tool = self.tools.get(call_id)
        if tool is None:
            self.hush(time)
            self._make_place()
            part_id = self._ids.next("prt", time)
            tool = ToolPart(self._telling.session_id, self.id, part_id, call_id, now)
            self.tools[call_id] = tool
        tool.merge(update, now)
        for terminal in tool.terminals:
            tool.show(terminal, self._terminals.get(terminal, ""))
        self._telling.part(tool.part(), now)
        return tool

    def printed(self, terminal: str, output: str, time: float) -> None:
        """Something was printed in a terminal that a tool call shows, or will show."""
        if terminal not in self._terminals and len(self._terminals) >= TOOLS:
            return
        whole = self._terminals[terminal] = (self._terminals.get(terminal, "") + output)[-OUTPUT_CHARS:]
        for tool in self.tools.values():
            if tool.show(terminal, whole):
                self._telling.part(tool.part(), milliseconds(time))

    def end(self, time: float, *, finish: str, error: Object | None, unfinished: str) -> None:
        """The message is complete. Tool calls that are not over are given up, for the reason `unfinished`."""
        self.hush(time)
        now = milliseconds(time)
        for tool in self.tools.values():
            if not tool.is_over:
                tool.give_up(unfinished, now)
                self._telling.part(tool.part(), now)
        tokens, cost = self.usage.with_total(), self.usage.cost
        self._tell_part({"type": "step-finish", "reason": finish, "cost": cost, "tokens": tokens}, time)
        self.info |= {"tokens": tokens, "cost": cost, "finish": finish}
        self.info["time"] = {**self.info["time"], "completed": now}
        if error is not None:
            self.info["error"] = error
        self._telling.message(self.info)

    def _make_place(self) -> None:
        if len(self.tools) >= TOOLS:
            over = next((name for name, tool in self.tools.items() if tool.is_over), next(iter(self.tools)))
            del self.tools[over]

    def _new_part(self, kind: Speech, time: float) -> Object:
        named = {"id": self._ids.next("prt", time), "sessionID": self._telling.session_id, "messageID": self.id}
        return {**named, "type": kind}

    def _tell_part(self, content: Object, time: float) -> None:
        named = {"id": self._ids.next("prt", time), "sessionID": self._telling.session_id, "messageID": self.id}
        self._telling.part({**named, **content}, milliseconds(time))


class _Speaking:
    """The part that text is being added to."""

    def __init__(self, kind: Speech, message: Any, named: Object, start: int) -> None:
        self.kind = kind
        self.message = message
        self.id: str = named["id"]
        self._named = named
        self._start = start
        self._pieces: list[str] = []
        self._chars = 0

    @property
    def is_full(self) -> bool:
        return self._chars >= TEXT_CHARS

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._chars += len(text)

    def part(self, end: int | None = None) -> Object:
        time = {"start": self._start} if end is None else {"start": self._start, "end": end}
        return {**self._named, "text": "".join(self._pieces), "time": time}


def _count(value: Any) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(value) if is_count else 0
