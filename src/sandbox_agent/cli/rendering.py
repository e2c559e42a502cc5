"""A turn on the terminal, as it streams: text as Markdown, thoughts dimmed, tools, diffs, plan."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from sandbox_agent.client.updates import Envelope, missing_in, said_in, update_in
from sandbox_agent.core.json_values import as_list, as_object

_DIFF_LINES = 40
_STATUS = {
    "pending": ("○", "yellow"),
    "in_progress": ("◐", "cyan"),
    "completed": ("●", "green"),
    "failed": ("✗", "red"),
}
_PLAN = {"pending": "☐", "in_progress": "▸", "completed": "☑"}


class _Diff(NamedTuple):
    path: str
    old: str | None
    new: str


@dataclass(slots=True)
class _Tool:
    title: str
    status: str = ""
    diffs: set[_Diff] = field(default_factory=set)


class View(Protocol):
    """What a turn is shown on."""

    def show(self, envelope: Envelope) -> None: ...
    def pause(self) -> None: ...
    def note(self, text: str, style: str = "dim") -> None: ...


class AnswerView:
    """The text of the agent's answer and nothing else, as it is, on `output`; notes go to the console."""

    def __init__(self, console: Console, output: TextIO) -> None:
        self._console = console
        self._output = output
        self._is_line_open = False

    def show(self, envelope: Envelope) -> None:
        text = said_in(envelope)
        if text:
            self._output.write(text)
            self._output.flush()
            self._is_line_open = not text.endswith("\n")

    def pause(self) -> None:
        if self._is_line_open:
            self._output.write("\n")
            self._output.flush()
            self._is_line_open = False

    def note(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(text, style=style))


class TurnView:
    """Feed it updates. What is finished is printed for good; only the block that still grows is redrawn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._kind = ""
        self._text = ""
        self._tools: dict[str, _Tool] = {}
        self._plan: list[tuple[str, str]] = []

    def show(self, envelope: Envelope) -> None:
        missing = missing_in(envelope)
        if missing is not None:
            self._print(Text(f"… {missing} updates are no longer kept by the server …", style="red"))
        match update_in(envelope):
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
                self._grow("message", text)
            case {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": str(text)}}:
                self._grow("thought", text)
            case {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": str(text)}}:
                self._print(Text(f"> {text}", style="bold"))
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(name)} as update:
                self._show_tool(name, update)
            case {"sessionUpdate": "plan", "entries": list(entries)}:
                self._show_plan([_entry(entry) for entry in entries])
            case {"sessionUpdate": "current_mode_update", "currentModeId": mode}:
                self._print(Text(f"mode {mode}", style="dim"))
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": kind}}:
                self._print(Text(f"[{kind}]", style="dim"))
            case _:
                pass  # titles, commands, usage: not part of what is said

    def pause(self) -> None:
        """Leave the terminal to somebody else: everything so far is printed for good."""
        self._flush()

    def note(self, text: str, style: str = "dim") -> None:
        self._print(Text(text, style=style))

    def _grow(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self._flush()
            self._kind = kind
        if not self._console.is_terminal:
            lead = "thinking: " if kind == "thought" and not self._text else ""
            self._console.out(lead + text, end="", highlight=False)
            self._text += text
            return
        self._text += text
        done, self._text = _finished_blocks(self._text)
        if done:
            self._stop_live()
            self._console.print(self._styled(done))
        if self._text.strip():
            self._redraw()

    def _redraw(self) -> None:
        if self._live is None:
            self._live = Live(console=self._console, transient=True, refresh_per_second=12, auto_refresh=False)
            self._live.start()
        tail = "\n".join(self._text.splitlines()[-max(3, self._console.height - 4) :])
        self._live.update(self._styled(tail), refresh=True)

    def _styled(self, text: str) -> RenderableType:
        if self._kind == "thought":
            return Padding(Text(text.strip(), style="dim italic"), (0, 0, 0, 2), expand=False)
        from rich.markdown import Markdown  # noqa: PLC0415 - brings a parser and pygments along: only for a terminal

        return Markdown(text)

    def _flush(self) -> None:
        self._stop_live()
        if not self._console.is_terminal:
            if self._text and not self._text.endswith("\n"):
                self._console.out("")
        elif self._text.strip():
            self._console.print(self._styled(self._text))
        self._text = ""
        self._kind = ""

    def _stop_live(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, *parts: RenderableType) -> None:
        self._flush()
        for part in parts:
            self._console.print(part)

    def _show_tool(self, name: str, update: dict[str, Any]) -> None:
        tool = self._tools.setdefault(name, _Tool(name))
        tool.title = str(update.get("title") or tool.title)
        status = str(update.get("status") or tool.status or "pending")
        fresh = [diff for diff in _diffs(update.get("content")) if diff not in tool.diffs]
        if status == tool.status and not fresh:
            return
        parts: list[RenderableType] = []
        if status != tool.status:
            mark, colour = _STATUS.get(status, ("·", "white"))
            line = Text(f"{mark} ", style=colour)
            line.append(tool.title, style="bold" if status == "pending" else "")
            line.append(f"  {status.replace('_', ' ')}", style="dim")
            parts.append(line)
        parts += [_render_diff(diff) for diff in fresh]
        tool.status = status
        tool.diffs.update(fresh)
        self._print(*parts)

    def _show_plan(self, entries: list[tuple[str, str]]) -> None:
        if entries == self._plan:
            return
        self._plan = entries
        lines = [Text("plan", style="magenta")]
        for status, content in entries:
            lines.append(Text(f"  {_PLAN.get(status, '☐')} {content}", style="dim" if status == "completed" else ""))
        self._print(Group(*lines))


def _finished_blocks(text: str) -> tuple[str, str]:
    """What of a growing Markdown text cannot change any more, and the rest: it is cut at an empty line outside code."""
    cut = 0
    position = 0
    is_code = False
    for line in text.splitlines(keepends=True):
        position += len(line)
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        if not line.strip() and not is_code and line.endswith("\n"):
            cut = position
    return text[:cut].rstrip("\n"), text[cut:]


def _entry(entry: Any) -> tuple[str, str]:
    fields = as_object(entry)
    return str(fields.get("status")), str(fields.get("content"))


def _diffs(content: Any) -> list[_Diff]:
    found = []
    for part in as_list(content):
        match part:
            case {"type": "diff", "path": str(path), "newText": str(new)}:
                old = part.get("oldText")
                found.append(_Diff(path, old if isinstance(old, str) else None, new))
            case _:
                pass
    return found


def _render_diff(diff: _Diff) -> RenderableType:
    old, new = (diff.old or "").splitlines(), diff.new.splitlines()
    lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    text = Text(f"  {diff.path}\n", style="bold")
    for line in lines[:_DIFF_LINES]:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
        text.append(f"  {line}\n", style=style)
    if len(lines) > _DIFF_LINES:
        text.append(f"  … {len(lines) - _DIFF_LINES} more lines\n", style="dim")
    text.right_crop(1)
    return text
