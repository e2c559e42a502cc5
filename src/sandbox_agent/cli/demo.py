"""`sandbox-agent demo`: a real server, one turn of the built-in agent, shown as it streams."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
from typing import Any

from rich.console import Console

from sandbox_agent.client.asking import Answer, PermissionRequest
from sandbox_agent.client.sandbox import SandboxAgent
from sandbox_agent.client.updates import Envelope, update_in
from sandbox_agent.core.json_values import as_object

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
        async for envelope in turn.envelopes():
            self._show(envelope)
        say(f"\n[bold]stopped[/]  {turn.stop_reason}")
        command = "sandbox-agent" if shutil.which("sandbox-agent") else sys.argv[0]
        say(f"[bold]server[/]   {sandbox.url} ran this turn; start your own with: {command} server")
        return turn.stop_reason

    async def wait(self, sandbox: SandboxAgent) -> None:
        """Until Ctrl-C."""
        self._console.print(f"[dim]kept running, token {sandbox.token}; Ctrl-C ends it[/]")
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
        await ended.wait()

    def allow(self, request: PermissionRequest) -> Answer:
        chosen = request.allow()
        option_id = chosen["outcome"]["optionId"]
        name = next(option["name"] for option in request.raw["options"] if option["optionId"] == option_id)
        self._console.print(f"{_INDENT}[yellow]permission asked[/] → answered: {name}", end="")
        return chosen

    def _show(self, envelope: Envelope) -> None:
        update = update_in(envelope)
        kind = str(update.get("sessionUpdate"))
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"text": str(text)}}:
                self._say(kind, text, "")
            case {"sessionUpdate": "agent_thought_chunk", "content": {"text": str(text)}}:
                self._say(kind, text, "dim italic")
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": name}:
                self._line("cyan", "tool", str(update.get("title") or name), update.get("status"))
            case {"sessionUpdate": "plan", "entries": list(entries)}:
                for entry in map(as_object, entries):
                    self._line("magenta", "plan", str(entry.get("content")), entry.get("status"))
            case {"sessionUpdate": "usage_update", "used": used, "size": size}:
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
