"""The contents of tool calls and the output of terminals, gathered for version 1, which can only replace them.

Version 2 adds to a tool call's contents and to a terminal's output piece by piece. Telling all of it again with each
piece would cost the square of it, so large ones are told again only when they have grown by a quarter, and at the
end. Each piece travels with the update that told it, or in one that changes nothing.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.versions.contents import TOOL_CONTENTS
from sandbox_agent.core.versions.diffs import text_content
from sandbox_agent.core.versions.kinds import TOOL_CALL, TOOL_CALL_UPDATE, is_same_call
from sandbox_agent.core.versions.pairs import keep, unpack, with_kept
from sandbox_agent.core.versions.recent import Recent, weight
from sandbox_agent.core.versions.upward import REMEMBERED, carried
from sandbox_agent.core.versions.version import Object, Version

MAX_GATHERED = 256 * 1024
"""Of one tool call; what comes later is kept but not shown."""
MAX_OUTPUT = 64 * 1024
"""Of one terminal: its newest bytes."""
_CALLS = 64
_TERMINALS = 64
_SMALL = 4096
_V1, _V2 = Version.V1, Version.V2


class _Contents:
    """What a tool call contains, in version 2."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.terminals: frozenset[str] = frozenset()
        self.grown = 0
        self.told = 0
        self._weight = 0

    @property
    def is_due(self) -> bool:
        return self.grown <= _SMALL or self.grown * 4 >= self.told * 5

    @property
    def is_behind(self) -> bool:
        return self.grown != self.told

    def replace(self, items: list[Any]) -> None:
        self._weight = self.grown = self.told = weight(items)
        is_kept = self._weight <= MAX_GATHERED
        self.items = list(items) if is_kept else []
        self.terminals = frozenset(_terminals(items)) if is_kept else frozenset()

    def add(self, item: Any) -> bool:
        """Whether there was room for it."""
        more = weight(item)
        self._weight += more
        if self._weight > MAX_GATHERED:
            return False
        self.items.append(item)
        self.grown += more
        self.terminals |= frozenset(_terminals([item]))
        return True


class _Terminal:
    def __init__(self) -> None:
        self.command = ""
        self.output = b""
        self.size = 0
        self.exit: Object | None = None

    def shown(self) -> str:
        lines = [f"$ {self.command}"] if self.command else []
        lines += [self.output.decode(errors="replace")] if self.output else []
        if self.exit is not None:
            code, signal = self.exit.get("exitCode"), self.exit.get("signal")
            lines.append(f"[signal {signal}]" if isinstance(signal, str) else f"[exit code {code}]")
        return "\n".join(lines)

    def updated(self, update: Object) -> None:
        if "command" in update:
            command = update["command"]
            self.command = command[:_SMALL] if isinstance(command, str) else ""
        if "output" in update:
            self.output, self.size = b"", 0
            self.grown(as_object(update["output"]).get("data"))
        if "exitStatus" in update:
            status = update["exitStatus"]
            self.exit = status if isinstance(status, dict) else None

    def grown(self, data: Any) -> None:
        try:
            added = base64.b64decode(data) if isinstance(data, str) else b""
        except (binascii.Error, ValueError):
            added = b""
        self.size += len(added)
        self.output = (self.output + added)[-MAX_OUTPUT:]


class Gathering:
    def __init__(self) -> None:
        self._calls: Recent[None] = Recent(REMEMBERED)
        self._contents: Recent[_Contents] = Recent(_CALLS)
        self._terminals: Recent[_Terminal] = Recent(_TERMINALS)

    def known(self, call_id: Any) -> bool:
        """Whether the call was told of before; from now on it was."""
        return not self._calls.put(call_id, None)

    def call_updated(self, update: Object) -> Object:
        """`tool_call_update`: the first of a call announces it."""
        call_id = update.get("toolCallId")
        is_known = self.known(call_id)
        pair = TOOL_CALL_UPDATE if is_known else TOOL_CALL
        contents = self._contents.get(call_id)
        if is_same_call(update) and (is_known or "title" in update):
            if "content" in update:
                (contents or self._started(call_id)).replace(update["content"])
            if "content" in update or contents is None or not contents.is_behind:
                return update if is_known else {**update, "sessionUpdate": "tool_call"}
        shown = update
        if isinstance(update.get("content"), list):
            contents = contents or self._started(call_id)
            contents.replace(update["content"])
            if contents.terminals:
                shown = {**update, "content": [self._embedded(item) for item in update["content"]]}
        elif "content" in update and contents is not None:
            contents.replace([])
        there = pair.plain(shown, _V1, is_exact=True)
        if "content" not in update and contents is not None and contents.is_behind:
            there["content"] = self._shown(contents)
        return pair.keeping(there, update, _V2)

    def content_added(self, update: Object) -> Object:
        """`tool_call_content_chunk`"""
        call_id = update.get("toolCallId")
        contents = self._contents.get(call_id) or self._started(call_id)
        has_room = contents.add(update.get("content"))
        is_known = self.known(call_id)
        if is_known and not (has_room and contents.is_due):
            return carried(update, _V2)
        return self._told(call_id, contents, update, is_new=not is_known)

    def terminal_updated(self, kind: str, update: Object) -> Object:
        """`terminal_update` and `terminal_output_chunk`: text in the tool call that shows the terminal."""
        name = update.get("terminalId")
        terminal = self._terminals.get(name)
        if terminal is None:
            terminal = _Terminal()
            self._terminals.put(name, terminal)
        before = terminal.size
        if kind == "terminal_update":
            terminal.updated(update)
        else:
            terminal.grown(update.get("data"))
        for call_id, contents in self._contents.values():
            if isinstance(name, str) and name in contents.terminals:
                contents.grown += max(terminal.size - before, 1)
                if contents.is_due or terminal.exit is not None:
                    return self._told(call_id, contents, update, is_new=False)
        return carried(update, _V2)

    def flush(self) -> list[Object]:
        """What was gathered and not told yet."""
        behind = [(call_id, contents) for call_id, contents in self._contents.values() if contents.is_behind]
        return [with_kept(self._replacing(call_id, contents), None, _V2) for call_id, contents in behind]

    def _told(self, call_id: Any, contents: _Contents, update: Object, *, is_new: bool) -> Object:
        there = self._replacing(call_id, contents)
        pair = TOOL_CALL if is_new else TOOL_CALL_UPDATE
        there = pair.plain(there, _V1, is_exact=False)
        if "_meta" in update:
            there["_meta"] = update["_meta"]
        return pair.keeping(there, update, _V2)

    def _replacing(self, call_id: Any, contents: _Contents) -> Object:
        return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "content": self._shown(contents)}

    def _shown(self, contents: _Contents) -> Any:
        contents.told = contents.grown
        items = [self._embedded(item) if _is_terminal(item) else item for item in contents.items]
        return TOOL_CONTENTS.read(items, _V1, is_exact=False)

    def _embedded(self, item: Any) -> Any:
        """A terminal as the text that is known of it; version 1 has no terminals of an agent's own."""
        if not _is_terminal(item):
            return item
        terminal = self._terminals.get(item["terminalId"])
        there = text_content(terminal.shown() if terminal else "")
        if "_meta" in item:
            there["_meta"] = item["_meta"]
        return keep(there, item, there, _V2)

    def _started(self, call_id: Any) -> _Contents:
        contents = _Contents()
        self._contents.put(call_id, contents)
        return contents


def _is_terminal(item: Any) -> bool:
    """Whether it is a terminal of the agent's own; one of a client's is kept beside it."""
    if not isinstance(item, dict) or item.get("type") != "terminal" or not isinstance(item.get("terminalId"), str):
        return False
    return not unpack(item, _V1)[0]


def _terminals(items: list[Any]) -> list[str]:
    return [item["terminalId"] for item in items if _is_terminal(item)]
