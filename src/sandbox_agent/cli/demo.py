"""`sandbox-agent demo`: a real server, one turn of the built-in agent, shown as it streams."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from typing import Any

from acp import schema
from rich.console import Console

from sandbox_agent.client.asking import Answer, PermissionRequest
from sandbox_agent.client.sandbox import SandboxAgent
from sandbox_agent.client.updates import Update

_INDENT = "\n         "


def run_demo(*, port: int, keep: bool) -> int:
    """0 when the turn ended as it should."""
    return asyncio.run(_run(port, keep=keep))


async def _run(port: int, *, keep: bool) -> int:
    demo = _Demo(Console(highlight=False))
    with tempfile.TemporaryDirectory(prefix="sandbox-agent-demo-") as home:
        flags = ("--port", str(port), "--log-level", "warning")
        async with SandboxAgent.start(data_dir=home, flags=flags, on_permission=demo.allow) as sandbox:
            reason = await demo.show(sandbox, home)
            if keep:
                await demo.wait(sandbox)
    return 0 if reason == "end_turn" else 1


class _Demo:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._kind = ""

    async def show(self, sandbox: SandboxAgent, cwd: str) -> str | None:
        """The stop reason."""
        say = self._console.print
        say(f"[bold]server[/]   {sandbox.url}")
        session = await sandbox.create_session(agent="mock", cwd=cwd)
        say(f"[bold]session[/]  {session.id}\n[bold]you[/]      demo\n[bold]agent[/]    ", end="")
        turn = session.prompt("demo")
        async for update in turn:
            self._show_update(update)
        say(f"\n[bold]stopped[/]  {turn.stop_reason}")
        say(f"[bold]server[/]   {sandbox.url} ran this turn; start your own with: sandbox-agent server")
        return turn.stop_reason

    async def wait(self, sandbox: SandboxAgent) -> None:
        """Until Ctrl-C."""
        self._console.print(f"[dim]kept running, token {sandbox.token}; Ctrl-C ends it[/]")
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
        await ended.wait()

    def allow(self, request: PermissionRequest) -> Answer:
        chosen = request.allow()
        name = next(o.name for o in request.options if o.option_id == chosen["outcome"]["optionId"])
        self._console.print(f"{_INDENT}[yellow]permission asked[/] → answered: {name}", end="")
        return chosen

    def _show_update(self, update: Update) -> None:
        kind = type(update).__name__
        match update:
            case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text)):
                self._say(kind, text, "")
            case schema.AgentThoughtChunk(content=schema.TextContentBlock(text=text)):
                self._say(kind, text, "dim italic")
            case schema.ToolCallStart(title=title, status=status) | schema.ToolCallProgress(title=title, status=status):
                self._line("cyan", "tool", title or update.tool_call_id, status)
            case schema.AgentPlanUpdate(entries=entries):
                for entry in entries:
                    self._line("magenta", "plan", entry.content, entry.status)
            case schema.UsageUpdate(used=used, size=size):
                self._console.print(f"{_INDENT}[dim]usage {used} of {size} tokens[/]", end="")
            case _:
                return
        self._kind = kind

    def _say(self, kind: str, text: str, style: str) -> None:
        if self._kind not in {"", kind}:
            self._console.print(_INDENT, end="")
        self._console.print(text, style=style, end="", markup=False)

    def _line(self, colour: str, word: str, what: str, status: Any) -> None:
        self._console.print(f"{_INDENT}[{colour}]{word}[/] {what} [dim]{status or ''}[/]", end="")
