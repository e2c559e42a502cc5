"""One running agent: lines in, lines out, an exit that is noticed at once, a stop that is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lines import LineSplitter, OversizedLine
from sandbox_agent.errors import AgentStartFailed
from sandbox_agent.process.child import PIPE_SIZE, Child, ExitStatus, Output, StartChild, enlarge
from sandbox_agent.process.stderr_log import Clean, StderrLog

_log = logging.getLogger(__name__)
_stderr = logging.getLogger("sandbox_agent.agent.stderr")

_WRITE_HIGH_WATER = 4 << 20

Lines = Sequence[bytes | OversizedLine]


class AgentProcess:
    """A child that speaks in lines. Create with `start`."""

    def __init__(self, agent: AgentId, child: Child, line_cap: int, clean: Clean) -> None:
        self.agent = agent
        self.pid = child.pid
        self.started = time.monotonic()
        self.stderr = StderrLog(self._log_stderr, clean=clean)
        self._child = child
        self._splitter = LineSplitter(line_cap)
        self._stdin: asyncio.WriteTransport | None = None
        self._stdout: Output | None = None
        self.has_room = True
        """Whether the agent reads what it is sent, so that more may be written."""
        self._made_room = asyncio.Event()
        self._is_connected = asyncio.Event()
        self._ended = asyncio.Event()
        self._handed_over = asyncio.Event()
        """Set when the caller of `start` has the process: an exit is told only to one who knows of it."""
        self._unwritten: list[bytes] = []
        self._on_lines: Callable[[Lines], None] = lambda lines: None
        self._on_exit: Callable[[ExitStatus], None] = lambda status: None
        self._after_write: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._finishing: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        launch: LaunchSpec,
        env: dict[str, str],
        *,
        on_lines: Callable[[Lines], None],
        on_exit: Callable[[ExitStatus], None],
        after_write: Callable[[], None] = lambda: None,
        line_cap: int,
        clean: Clean = lambda text, limit: text[:limit],
        start_child: StartChild = Child.launch,
    ) -> AgentProcess:
        """Launch in a process group of its own. Raises AgentStartFailed when the command cannot be run.

        `clean` takes the secrets out of its stderr, which is logged and told to clients."""
        pipe = subprocess.PIPE
        try:
            child = start_child(launch.command, env=env, cwd=launch.cwd, stdin=pipe, stdout=pipe, stderr=pipe)
        except (OSError, ValueError) as error:
            detail = f"agent {launch.agent!r} cannot be started: {launch.command[0]!r}: {error}"
            raise AgentStartFailed(detail, command=list(launch.command)) from None
        process = cls(launch.agent, child, line_cap, clean)
        process._on_lines, process._on_exit, process._after_write = on_lines, on_exit, after_write
        connecting = asyncio.ensure_future(process._connect())
        try:
            await asyncio.shield(connecting)
        except BaseException:
            await process._give_up(connecting)
            raise
        process._handed_over.set()
        return process

    @property
    def is_running(self) -> bool:
        return self._child.status is None

    @property
    def uptime(self) -> float:
        return time.monotonic() - self.started

    def write(self, line: bytes) -> None:
        """Queue one line for stdin: `after_write` is called once it has left. Who can wait awaits `drained`."""
        if not self._unwritten:
            self._loop.call_soon(self._write_queued)
        self._unwritten.append(line)

    @property
    def unread_bytes(self) -> int:
        """What the agent has not read of its stdin, as far as we hold it."""
        queued = sum(map(len, self._unwritten))
        return queued if self._stdin is None else queued + self._stdin.get_write_buffer_size()

    async def drained(self) -> None:
        """Return when the agent has read enough that more may be written, or is gone."""
        while not self.has_room:
            await self._made_room.wait()

    def pause_reading(self) -> None:
        if self._stdout is not None:
            self._stdout.pause()

    def resume_reading(self) -> None:
        if self._stdout is not None:
            self._stdout.resume()

    async def stop(self, *, grace: float = 1.0) -> None:
        """EOF, then TERM, then KILL to the whole group; each step waits `grace` seconds at most."""
        self._write_queued()
        if self._stdin is not None:
            self._stdin.close()
        await self._child.stop(grace=grace)
        await self._ends_within(grace)

    async def wait(self) -> ExitStatus:
        """The exit, after the last of its output."""
        await self._ended.wait()
        return await self._child.exited()

    def _write_queued(self) -> None:
        """What one turn of the loop has brought, in one write: it wakes the agent once."""
        lines, self._unwritten = self._unwritten, []
        if lines:
            self._loop.call_soon(self._after_write)  # the transport writes when this turn of the loop ends
        if lines and self._stdin is not None and not self._stdin.is_closing():
            lines.append(b"")
            self._stdin.write(b"\n".join(lines))

    def _fill(self) -> None:
        self.has_room = False
        self._made_room.clear()

    def _make_room(self) -> None:
        self.has_room = True
        self._made_room.set()

    async def _ends_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def _connect(self) -> None:
        child = self._child
        self._finishing = self._loop.create_task(self._finish(), name=f"watch-{self.agent}")
        try:
            for pipe in (child.stdin, child.stdout):
                enlarge(pipe, PIPE_SIZE)
            self._stdin = await child.connect_stdin(_Stdin(self._fill, self._make_room))
            self._stdin.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
            await child.pump(child.stderr, self.stderr.feed, self.stderr.finish)
            self._stdout = await child.pump(child.stdout, self._read, self._end_of_lines)
        finally:
            self._is_connected.set()

    async def _give_up(self, connecting: asyncio.Future[None]) -> None:
        """The start was cancelled: nobody will ever stop this process, so end it here."""
        self._on_lines, self._on_exit = lambda lines: None, lambda status: None
        self._handed_over.set()
        self._child.signal_group(signal.SIGKILL)
        with contextlib.suppress(OSError):
            await connecting  # a few turns of the loop: it waits for nobody
        await self._ends_within(1.0)

    def _read(self, chunk: bytes) -> None:
        self._hand_on(self._splitter.feed(chunk))

    def _end_of_lines(self) -> None:
        self._hand_on(self._splitter.finish())

    def _hand_on(self, lines: Lines) -> None:
        if not lines:
            return
        try:
            self._on_lines(lines)
        except Exception:  # noqa: BLE001 - a callback of the loop: an error that left it would end the pipe for good
            _log.exception("handling lines failed agent=%s", self.agent)

    async def _finish(self) -> None:
        """Once it has exited: whatever it has left behind goes, what it last said is read, then the exit is told."""
        status = await self._child.exited()
        self._make_room()
        self._child.signal_group(signal.SIGKILL)
        await self._is_connected.wait()  # a few turns of the loop, for a process that dies at once
        await self._child.last_output()
        if self._stdin is not None and (not self._stdin.is_closing() or self._stdin.get_write_buffer_size()):
            self._stdin.abort()
        await self._child.end()
        self._ended.set()
        await self._handed_over.wait()  # at once, but for a process that dies while it is being started
        self._on_exit(status)

    def _log_stderr(self, line: str) -> None:
        _stderr.info("%s: %s", self.agent, line)


class _Stdin(asyncio.BaseProtocol):
    """Back pressure: says when the pipe is full, and when it is no longer."""

    def __init__(self, fill: Callable[[], None], make_room: Callable[[], None]) -> None:
        self.pause_writing = fill  # type: ignore[method-assign]
        self.resume_writing = make_room  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        self.resume_writing()
