"""A tool call of ACP as a tool part of OpenCode: one part id from its announcement to its end.

OpenCode draws `bash`, `edit`, `read`, `grep`, `webfetch` and `websearch` by their own keys; other names are shown with
their input."""

from __future__ import annotations

import shlex
from typing import Any

from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, meta_value
from sandbox_agent.history.diffs import unified_diff
from sandbox_agent.history.opencode.limits import OUTPUT_CHARS, PATCH_CHARS, cut, cut_values

_PATHS = ("filePath", "file_path", "path", "abs_path", "absolute_path", "notebook_path")
_NAME_CHARS = 200


class ToolPart:
    def __init__(self, session_id: str, message_id: str, part_id: str, call_id: str, now: int) -> None:
        self.message_id = message_id
        self.call_id = call_id
        self.edits: list[Edit] = []
        self.is_over = False
        self.has_run = False
        """It is at work, or waits for somebody's permission to be."""
        self.terminals: list[str] = []
        self._named = {"id": part_id, "sessionID": session_id, "messageID": message_id, "type": "tool"}
        self._start = now
        self._end = now
        self._status = "pending"
        self._title = ""
        self._kind = "other"
        self._tool = ""
        self._input: Object = {}
        self._path = ""
        self._text = ""
        self._raw_output: Any = None
        self._shown: dict[str, str] = {}
        self._problem = ""

    def merge(self, update: Object, now: int) -> None:
        """Each update replaces the members that it names."""
        if update.get("title") is not None:
            self._title = cut(as_text(update["title"]), OUTPUT_CHARS)
        if isinstance(update.get("kind"), str):
            self._kind = update["kind"]
        self._tool = _tool_name(update) or self._tool
        if update.get("rawInput") is not None:
            self._input = cut_values(as_object(update["rawInput"]))
        if update.get("rawOutput") is not None:
            self._raw_output = cut(as_text(update["rawOutput"]), OUTPUT_CHARS)
        for location in map(as_object, as_list(update.get("locations"))[:1]):
            self._path = as_text(location.get("path"))
        if isinstance(update.get("content"), list):
            self._take_content(update["content"])
        self._move(as_text(update.get("status")), now)

    def asked_for(self) -> None:
        """Its permission is asked for: OpenCode calls that running."""
        self.has_run = True

    def show(self, terminal: str, output: str) -> bool:
        """Whether this call shows what was printed in a terminal."""
        if terminal not in self.terminals or self.is_over:
            return False
        self._shown[terminal] = cut(output, OUTPUT_CHARS)
        return True

    def give_up(self, problem: str, now: int) -> None:
        """The turn is over and the call is not."""
        self.is_over, self._end = True, now
        self._status, self._problem = "failed", problem

    def part(self) -> Object:
        tool, given = self.native()
        return {**self._named, "callID": self.call_id, "tool": tool, "state": self._state(tool, given)}

    def native(self) -> tuple[str, Object]:
        """The tool of OpenCode that this is, with the input that it would have there."""
        given = self._input
        path = next((as_text(given[name]) for name in _PATHS if isinstance(given.get(name), str)), "") or self._path
        if self.edits or (self._kind == "edit" and path):
            return "edit", {**given, "filePath": self.edits[0].path if self.edits else path}
        command = _command(given.get("command"))
        if self._kind == "execute":
            return "bash", {**given, "command": command or self._title}
        if self._kind == "read" and path:
            return "read", {**given, "filePath": path}
        pattern = given.get("pattern", given.get("query"))
        if self._kind == "search" and isinstance(pattern, str):
            return "grep", {**given, "pattern": pattern}
        if self._kind == "fetch" and isinstance(given.get("url"), str):
            return "webfetch", given
        if self._kind == "fetch" and isinstance(given.get("query"), str):
            return "websearch", given
        name = self._tool or (self._kind if self._kind != "other" else "") or self._title or "tool"
        return " ".join(name.split())[:_NAME_CHARS] or "tool", given

    @property
    def is_done(self) -> bool:
        return self._status == "completed"

    @property
    def title(self) -> str:
        return self._title

    @property
    def diff(self) -> str:
        return cut("\n".join(edit.patch for edit in self.edits), PATCH_CHARS)

    def _state(self, tool: str, given: Object) -> Object:
        output = self._output()
        metadata: Object = {"diff": self.diff} if self.edits else {}
        if tool == "bash":
            metadata["output"] = output
        if self._status == "completed":
            time = {"start": self._start, "end": self._end}
            done: Object = {"status": "completed", "input": given, "output": output, "title": self._title}
            return {**done, "metadata": metadata, "time": time}
        if self._status == "failed":
            time = {"start": self._start, "end": self._end}
            problem = self._problem or output or "the tool call failed"
            return {"status": "error", "input": given, "error": problem, "metadata": metadata, "time": time}
        if not self.has_run:
            return {"status": "pending", "input": given, "raw": ""}
        running: Object = {"status": "running", "input": given, "metadata": metadata, "time": {"start": self._start}}
        return {**running, "title": self._title} if self._title else running

    def _output(self) -> str:
        shown = "".join(self._shown.values())
        return cut(f"{self._text}{shown}" or as_text(self._raw_output), OUTPUT_CHARS)

    def _take_content(self, content: list[Any]) -> None:
        texts: list[str] = []
        self.edits, self.terminals = [], []
        for item in map(as_object, content):
            kind = item.get("type")
            if kind == "content":
                texts.append(_block_note(as_object(item.get("content"))))
            elif kind == "diff":
                self.edits.append(Edit.of(item))
            elif kind == "terminal":
                self.terminals.append(as_text(item.get("terminalId")))
        self._text = cut("".join(texts), OUTPUT_CHARS)

    def _move(self, status: str, now: int) -> None:
        if self._problem:
            self._problem = ""  # it has gone on after its turn was over
        if status in ("completed", "failed"):
            self._status, self._end, self.is_over = status, now, True
        elif status == "in_progress":
            self._status, self.has_run, self.is_over = "running", True, False


class Edit:
    """One file's change within a tool call."""

    __slots__ = ("added", "patch", "path", "removed", "status")

    def __init__(self, path: str, patch: str, status: str) -> None:
        lines = patch.split("\n")[2:]
        self.path = path
        self.patch = cut(patch, PATCH_CHARS)
        self.status = status
        self.added = sum(line.startswith("+") for line in lines)
        self.removed = sum(line.startswith("-") for line in lines)

    @staticmethod
    def of(diff: Object) -> Edit:
        old, path = diff.get("oldText"), as_text(diff.get("path"))
        patch = unified_diff(path, None if old is None else as_text(old), as_text(diff.get("newText")))
        return Edit(path, patch, "added" if old is None else "modified")


def _tool_name(update: Object) -> str:
    """What the agent calls the tool, where it says so beside ACP."""
    named = meta_value(update, "toolName")
    if named is None:
        named = as_object(as_object(update.get("_meta")).get("claudeCode")).get("toolName")
    return as_text(named)


def _command(value: Any) -> str:
    if isinstance(value, list):
        return shlex.join(as_text(word) for word in value)
    return as_text(value)


def _block_note(block: Object) -> str:
    if block.get("type") == "text":
        return as_text(block.get("text"))
    resource = as_object(block.get("resource"))
    if isinstance(resource.get("text"), str):
        return as_text(resource["text"])
    name = as_text(block.get("uri") or resource.get("uri") or block.get("mimeType"))
    return f"[{as_text(block.get('type'))} {name}]"
