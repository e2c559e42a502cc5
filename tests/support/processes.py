"""Agent processes for tests: what they wrote and how they ended, and whether anything of them is left."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.process import AgentProcess, ExitStatus
from sandbox_agent.process.agent_process import Lines
from support.limits import LINE_BYTES

DEADLINE = 30.0
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


class Watched:
    """A process and all that came of it. `seen` is in order: lines, then the exit status."""

    def __init__(self) -> None:
        self.process: AgentProcess | None = None
        self.seen: list[Any] = []
        self.stderr_at_exit: list[str] = []
        self._changed = asyncio.Event()

    @property
    def lines(self) -> list[Any]:
        return [one for one in self.seen if not isinstance(one, ExitStatus)]

    @property
    def running(self) -> AgentProcess:
        assert self.process is not None
        return self.process

    def came(self, lines: Lines) -> None:
        self.seen += lines
        self._changed.set()

    def exited(self, status: ExitStatus) -> None:
        self.seen.append(status)
        summary = self.running.stderr.summary()
        self.stderr_at_exit = summary.head + summary.tail
        self._changed.set()

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for lines or the exit to make `condition` true."""
        async with asyncio.timeout(DEADLINE):
            while not (result := condition()):
                self._changed.clear()
                await self._changed.wait()
        return result

    async def exit(self) -> ExitStatus:
        """The exit, once it has been told: of a program that dies while it is started that is a moment later."""
        async with asyncio.timeout(DEADLINE):
            status = await self.running.wait()
        await self.until(lambda: status in self.seen)
        return status

    def send(self, message: dict[str, Any]) -> None:
        self.running.write(msgspec.json.encode({"jsonrpc": "2.0", **message}))


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


@asynccontextmanager
async def launched(
    *command: str,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    line_cap: int = LINE_BYTES,
    on_lines: Callable[[Lines], None] | None = None,
) -> AsyncIterator[Watched]:
    watched = Watched()

    def came(lines: Lines) -> None:
        if on_lines is not None:
            on_lines(lines)
        watched.came(lines)

    watched.process = await AgentProcess.start(
        LaunchSpec(agent=AgentId("test"), command=command, cwd=cwd),
        {**ENV, **(env or {})},
        on_lines=came,
        on_exit=watched.exited,
        line_cap=line_cap,
    )
    try:
        yield watched
    finally:
        await watched.process.stop(grace=0.2)
        await watched.exit()


def members(group: int) -> list[int]:
    """The processes of a group that are still alive."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in {"Z", "X"}:
            found.append(int(stat.parent.name))
    return found


async def gone(group: int) -> None:
    """Return when nobody of the group is left. The kernel may need a moment after a KILL."""
    async with asyncio.timeout(DEADLINE):
        while members(group):
            await asyncio.sleep(0.01)
