"""One running agent: lines in, lines out, an exit that is noticed at once, a stop that is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lines import LineSplitter, OversizedLine
from sandbox_agent.errors import AgentStartFailed
from sandbox_agent.process.stderr_log import StderrLog

_log = logging.getLogger(__name__)
_stderr = logging.getLogger("sandbox_agent.agent.stderr")

_PIPE_SIZE = 1 << 20
_WRITE_HIGH_WATER = 4 << 20
_LARGE_CHUNK = 1 << 16
"""A read of so much is likely to be followed by another at once."""
_LAST_OUTPUT = 0.3
"""Seconds that a dead process's pipes may stay open (a grandchild can hold them) before we stop reading."""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """`code` as the shell would say it: 0 to 255, or 128 + the signal's number."""

    code: int

    @property
    def words(self) -> str:
        if self.code > 128:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(self.code - 128).name}"
        return f"exited with code {self.code}"


Lines = Sequence[bytes | OversizedLine]


class AgentProcess:
    """Owns the child, its process group and its three pipes. Create with `start`."""

    def __init__(self, spec: LaunchSpec, child: subprocess.Popen[bytes], line_cap: int) -> None:
        self.agent: AgentId = spec.agent
        self.pid = child.pid
        self.started = time.monotonic()
        self.stderr = StderrLog(self._log_stderr)
        self._child = child
        self._splitter = LineSplitter(line_cap)
        self._stdin: asyncio.WriteTransport | None = None
        self._stdout: asyncio.ReadTransport | None = None
        self._stderr: asyncio.ReadTransport | None = None
        self._stdin_ready = asyncio.Event()
        self._stdin_ready.set()
        self._stdout_ended = asyncio.Event()
        self._stderr_ended = asyncio.Event()
        self._exited = asyncio.Event()
        self._died = asyncio.Event()
        self._handed_over = asyncio.Event()
        """Set when the caller of `start` has the process: an exit is told only to one who knows of it."""
        self._status: ExitStatus | None = None
        self._unwritten: list[bytes] = []
        self._is_paused = False
        self._on_lines: Callable[[Lines], None] = lambda lines: None
        self._on_exit: Callable[[ExitStatus], None] = lambda status: None
        self._after_write: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._finishing: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        spec: LaunchSpec,
        env: dict[str, str],
        *,
        on_lines: Callable[[Lines], None],
        on_exit: Callable[[ExitStatus], None],
        after_write: Callable[[], None] = lambda: None,
        line_cap: int,
    ) -> AgentProcess:
        """Launch in a process group of its own. Raises AgentStartFailed when the command cannot be run."""
        try:
            child = subprocess.Popen(  # noqa: ASYNC220 - a vfork of about a millisecond, and we watch the pid ourselves
                spec.command,
                env=env,
                cwd=spec.cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            detail = f"agent {spec.agent!r} cannot be started: {spec.command[0]!r}: {error}"
            raise AgentStartFailed(detail, command=list(spec.command)) from None
        process = cls(spec, child, line_cap)
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
        return self._status is None and not self._died.is_set()

    @property
    def uptime(self) -> float:
        return time.monotonic() - self.started

    def write(self, line: bytes) -> None:
        """Queue one line for stdin: `after_write` is called once it has left. Who can wait awaits `drained`."""
        if not self._unwritten:
            self._loop.call_soon(self._write_queued)
        self._unwritten.append(line)

    @property
    def has_room(self) -> bool:
        return self._stdin_ready.is_set()

    async def drained(self) -> None:
        """Return when the agent has read enough that more may be written, or is gone."""
        await self._stdin_ready.wait()

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._stdout is not None and not self._stdout.is_closing():
            self._stdout.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._stdout is not None and not self._stdout.is_closing():
            self._stdout.resume_reading()

    async def stop(self, *, grace: float = 1.0) -> None:
        """EOF, then TERM, then KILL to the whole group; each step waits `grace` seconds at most."""
        self._write_queued()
        if self._stdin is not None:
            self._stdin.close()
        for step in (signal.SIGTERM, signal.SIGKILL):
            if await self._exits_within(grace):
                break
            self._signal_group(step)
        await self._exits_within(grace)

    async def wait(self) -> ExitStatus:
        await self._exited.wait()
        assert self._status is not None  # noqa: S101 - set before the event
        return self._status

    def _write_queued(self) -> None:
        """What one turn of the loop has brought, in one write: it wakes the agent once."""
        lines, self._unwritten = self._unwritten, []
        if lines:
            self._loop.call_soon(self._after_write)  # the transport writes when this turn of the loop ends
        if lines and self._stdin is not None and not self._stdin.is_closing():
            lines.append(b"")
            self._stdin.write(b"\n".join(lines))

    async def _exits_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        stdin, stdout, stderr = self._child.stdin, self._child.stdout, self._child.stderr
        if stdin is None or stdout is None or stderr is None:
            raise RuntimeError("a child without pipes")
        for pipe in (stdin, stdout):
            _enlarge(pipe)
        self._stdin, _ = await loop.connect_write_pipe(lambda: _Stdin(self._stdin_ready), stdin)
        self._stdin.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        watcher = threading.Thread(target=self._watch, args=(loop,), name=f"watch-{self.agent}", daemon=True)
        watcher.start()
        self._stderr, _ = await loop.connect_read_pipe(lambda: _Reader(self.stderr.feed, self._end_of_stderr), stderr)
        self._stdout, _ = await loop.connect_read_pipe(lambda: _Reader(self._read, self._end_of_stdout), stdout)

    async def _give_up(self, connecting: asyncio.Future[None]) -> None:
        """The start was cancelled: nobody will ever stop this process, so end it here."""
        self._on_lines, self._on_exit = lambda lines: None, lambda status: None
        self._handed_over.set()
        self._signal_group(signal.SIGKILL)
        with contextlib.suppress(OSError):
            await connecting  # a few turns of the loop: it waits for nobody
        await self._exits_within(1.0)

    def _read(self, chunk: bytes) -> None:
        lines = self._splitter.feed(chunk)
        if lines:
            self._hand_on(lines)
        if len(chunk) >= _LARGE_CHUNK and not self._is_paused and self._stdout is not None:
            self._stdout.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        """After a turn of the loop, in which readers got what came: else one read would follow another for long."""
        if not self._is_paused:
            self.resume_reading()

    def _end_of_stdout(self) -> None:
        lines = self._splitter.finish()
        if lines:
            self._hand_on(lines)
        self._stdout_ended.set()

    def _hand_on(self, lines: Lines) -> None:
        try:
            self._on_lines(lines)
        except Exception:  # noqa: BLE001 - a callback of the loop: an error that left it would end the pipe for good
            _log.exception("handling lines failed agent=%s", self.agent)

    def _end_of_stderr(self) -> None:
        self.stderr.finish()
        self._stderr_ended.set()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: learn of the exit without reaping, so that the group's number stays ours."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            loop.call_soon_threadsafe(self._exit_seen)

    def _exit_seen(self) -> None:
        self._died.set()
        self._stdin_ready.set()
        self._finishing = asyncio.get_running_loop().create_task(self._finish())

    async def _finish(self) -> None:
        self._signal_group(signal.SIGKILL)  # whatever it has left behind
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_OUTPUT):
                await self._stdout_ended.wait()
                await self._stderr_ended.wait()
        self._read_rest()
        code = self._child.wait()
        self._status = ExitStatus(code if code >= 0 else 128 - code)
        if self._stdin is not None and (not self._stdin.is_closing() or self._stdin.get_write_buffer_size()):
            self._stdin.abort()
        for pipe in (self._stdout, self._stderr):
            if pipe is not None:
                pipe.close()
        self._exited.set()
        await self._handed_over.wait()  # at once, but for a process that dies while it is being started
        self._on_exit(self._status)

    def _read_rest(self) -> None:
        """What it wrote and we have not read: we were slow, or somebody else holds its pipes open."""
        for pipe, ended, feed, finish in (
            (self._child.stdout, self._stdout_ended, self._read, self._end_of_stdout),
            (self._child.stderr, self._stderr_ended, self.stderr.feed, self._end_of_stderr),
        ):
            if pipe is None or ended.is_set():
                continue
            left = _PIPE_SIZE
            with contextlib.suppress(OSError, ValueError):  # it is empty, or closed
                while left > 0 and (chunk := os.read(pipe.fileno(), left)):
                    left -= len(chunk)
                    feed(chunk)
            finish()

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _log_stderr(self, line: str) -> None:
        _stderr.info("%s: %s", self.agent, line)


class _Reader(asyncio.Protocol):
    def __init__(self, on_chunk: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self.data_received = on_chunk  # type: ignore[assignment,method-assign]  # no method in between on the hot path
        self._on_end = on_end

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class _Stdin(asyncio.BaseProtocol):
    """Back pressure: clear while the pipe is full."""

    def __init__(self, ready: asyncio.Event) -> None:
        self._ready = ready

    def pause_writing(self) -> None:
        self._ready.clear()

    def resume_writing(self) -> None:
        self._ready.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ready.set()


def _enlarge(pipe: IO[bytes]) -> None:
    """Fewer wake-ups for the same bytes, where the system lets us."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
