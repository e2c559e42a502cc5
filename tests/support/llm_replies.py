"""What the loopback LLM answers: decided from the last thing that was said to it, the same for every provider."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

SHELL_TOOLS = (
    *("Bash", "bash", "shell", "Shell", "shell_command", "exec_command", "local_shell", "run_shell_command"),
    *("execute", "execute_command", "run_command", "run_commands", "terminal", "run_in_terminal", "run_terminal_cmd"),
    *("execute_bash", "launch-process", "run_terminal_command", "Execute"),
)
_COMMAND_FIELDS = ("command", "cmd", "commands", "script", "input", "code")
_FILLERS: dict[str, Any] = {"boolean": False, "integer": 10000, "number": 10000, "array": [], "object": {}}
# what agents wrap around the user's own words
_WRAPPING = re.compile(
    r"<(info-msg|current_datetime|session_context|system-reminder|environment_context|system)>.*?</\1>", re.DOTALL
)


@dataclass(frozen=True)
class Turn:
    """One request, as far as the answer depends on it."""

    text: str
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_tool_result: bool = False
    wanted_shape: dict[str, Any] | None = None


@dataclass(frozen=True)
class Words:
    pieces: tuple[str, ...]
    thinking: bool = False
    pause: float = 0.01

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: dict[str, Any]
    pause: float = 0.0


@dataclass(frozen=True)
class Failure:
    status: int
    pause: float = 0.0


Reply = Words | ToolCall | Failure


def decide(turn: Turn) -> Reply:
    """Obey the directive in the text: RUN:cmd, TOOL:name {json}, SLOW[:n], THINK, FAIL:status. Else echo it.

    Directives count only when tools are offered, so that the side requests by which agents find titles and topics
    are answered at once and in words.
    """
    if turn.wanted_shape is not None:
        return _words(json.dumps(_smallest(turn.wanted_shape)))
    if turn.is_tool_result:
        return _words(f"TOOL_RESULT[{turn.text.strip()[:200]}] done.")
    text = unwrapped(turn.text)
    if turn.tools:
        if found := re.search(r"FAIL:(\d{3})", text):
            return Failure(int(found[1]))
        if found := re.search(r"TOOL:(\S+) (\{.*\})", text):
            return ToolCall(found[1], json.loads(found[2]))
        if found := re.search(r"RUN:(.+?)(?:</|$)", text, re.MULTILINE):
            return _shell_call(found[1].strip(), turn.tools)
        if found := re.search(r"SLOW(?::(\d+))?", text):
            return Words(tuple(f"slow{n} " for n in range(int(found[1] or 300))), pause=0.1)
    return _words(f"ECHO[{text[-160:]}] from the loopback model", thinking=bool(turn.tools) and "THINK" in text)


def unwrapped(text: str) -> str:
    """The user's own words."""
    return _WRAPPING.sub("", text).strip()


def flatten(content: object) -> str:
    """The text in whatever a provider nests it in."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(filter(None, map(flatten, content)))
        case dict():
            for name in ("text", "output", "content", "result", "response"):
                if name in content:
                    return flatten(content[name])
            return json.dumps(content)
        case _:
            return str(content)


def _words(text: str, *, thinking: bool = False) -> Words:
    size = len(text) // 4 + 1
    return Words(tuple(text[at : at + size] for at in range(0, len(text), size)), thinking=thinking)


def _shell_call(command: str, tools: dict[str, dict[str, Any]]) -> Reply:
    for known in SHELL_TOOLS:
        for name, schema in tools.items():
            if name == known or name.endswith((f"__{known}", f".{known}")):
                return ToolCall(name, _shell_arguments(schema, command))
    return _words(f"NO_SHELL_TOOL among {sorted(tools)}")


def _shell_arguments(schema: dict[str, Any], command: str) -> dict[str, Any]:
    fields: dict[str, Any] = schema.get("properties") or {}
    key = next((name for name in _COMMAND_FIELDS if name in fields), "command")
    arguments: dict[str, Any] = {key: command}
    if _kind(fields.get(key, {})) == "array":
        arguments[key] = ["bash", "-lc", command] if key == "command" else [command]
    if "sandbox_permissions" in fields:  # codex asks for permission only when it must leave its sandbox
        arguments |= {"sandbox_permissions": "require_escalated", "justification": "the test wants it"}
    for name in schema.get("required") or []:
        arguments.setdefault(name, _filler(fields.get(name, {})))
    return arguments


def _smallest(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: _filler(field) for name, field in (schema.get("properties") or {}).items()}


def _filler(schema: dict[str, Any]) -> Any:
    return schema["enum"][0] if schema.get("enum") else _FILLERS.get(_kind(schema), "filler")


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type") or ("array" if "items" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    return str(kind).lower()
