"""What an agent of version 2 does by itself: files and terminals, for which version 1 asks its client."""

from __future__ import annotations

import asyncio
import base64
import itertools
from pathlib import Path

from sandbox_agent.mock_agent.turn import Turn
from sandbox_agent.mock_agent.wire import Refusal

_terminals = itertools.count(1)


def read_own(path: str, *, line: int | None, limit: int | None) -> str:
    """The text, from a line on (counted from 1), at most so many lines. Raises Refusal."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Refusal(0, str(error)) from None
    lines = text.splitlines(keepends=True)[max((line or 1) - 1, 0) :]
    return "".join(lines if limit is None else lines[:limit])


def write_own(path: str, text: str) -> None:
    """Raises Refusal."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refusal(0, str(error)) from None


async def run_own(turn: Turn, command: str, args: list[str]) -> None:
    """Run a command in a terminal of the agent's own, and tell of it while it runs."""
    shown = " ".join([command, *args])
    terminal = {"terminalId": f"terminal-{next(_terminals)}"}
    call_id = turn.new_call_id()
    call = {"toolCallId": call_id, "title": f"Run {shown}", "kind": "execute", "status": "in_progress"}
    begun = {**terminal, "command": shown, "cwd": turn.session.cwd, "size": {"cols": 80, "rows": 24}}
    turn.update({"sessionUpdate": "terminal_update", **begun})
    turn.update({"sessionUpdate": "tool_call", **call, "content": [{"type": "terminal", **terminal}]})
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=turn.session.cwd,
        )
    except OSError as error:
        turn.update({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "failed"})
        raise Refusal(0, str(error)) from None
    output = b""
    try:
        while data := await process.stdout.read(65536) if process.stdout else b"":
            output += data
            encoded = base64.b64encode(data).decode()
            turn.update({"sessionUpdate": "terminal_output_chunk", **terminal, "data": encoded})
        code = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        turn.update({"sessionUpdate": "terminal_update", **terminal, "exitStatus": {"signal": "SIGKILL"}})
        turn.update({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "cancelled"})
        raise
    turn.update({"sessionUpdate": "terminal_update", **terminal, "exitStatus": {"exitCode": max(code, 0)}})
    status = "completed" if code == 0 else "failed"
    turn.update({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status})
    turn.say(f"exit code {code}\n{output.decode(errors='replace')}")
