"""One program that we run: in a group of its own, its output pumped, its exit seen at once, its end bounded.

Agents, installs and terminals all stand on this; it raises what the system says, and they say it in their words.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

import msgspec

from sandbox_agent.process import table
from sandbox_agent.process.roster import ROSTER
from sandbox_agent.process.spawn import Spawned, spawn

PIPE_SIZE = 1 << 20
_LARGE_CHUNK = 1 << 16
"""A read of so much is likely to be followed by another at once."""
_NO_INPUT = (subprocess.DEVNULL, subprocess.PIPE)
_PIPED = (subprocess.PIPE, subprocess.STDOUT)
_LAST_OUTPUT = 0.3
"""Seconds that a dead program's pipes may stay open (a grandchild can hold them) before we stop reading."""


class ExitStatus(msgspec.Struct, frozen=True):
    """`code` as the shell would say it: 0 to 255, or 128 + the signal's number. `signal` only if one ended it."""

    code: int
    signal: str | None = None

    @property
    def words(self) -> str:
        if self.code > 128:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(self.code - 128).name}"
        return f"exited with code {self.code}"


class Child:
    """Owns the program, its process group and its pipes. Create with `launch`; whoever does calls `end`.

    The program is not reaped before `end`: so long the number of its group is nobody else's.
    """

    def __init__(self, process: subprocess.Popen[bytes] | Spawned) -> None:
        self.pid = process.pid
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.status: ExitStatus | None = None
        """Set as soon as the program has exited."""
        self._process = process
        self._outputs: list[Output] = []
        self._handed_over: list[IO[bytes]] = []
        """Pipes that a transport reads or writes, and closes."""
        self._exit_seen = asyncio.Event()
        self._is_given_up = False
        ROSTER.add(self.pid)
        loop = asyncio.get_running_loop()
        pidfd = _open_pidfd(self.pid)
        if pidfd is not None:
            loop.add_reader(pidfd, self._see_exit, loop, pidfd)
        else:
            _thread.start_new_thread(self._watch, (loop,))  # `threading` would wait until it runs

    @classmethod
    def launch(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.STDOUT,
    ) -> Child:
        """Start `command`. Raises OSError, ValueError. The three ends are as Popen takes them: a PTY's will do too."""
        marked = {**env, **ROSTER.mark}
        is_plain = cwd is None and (stdin, stdout) == _NO_INPUT and stderr in _PIPED and command[0].startswith("/")
        process: subprocess.Popen[bytes] | Spawned
        if is_plain and ROSTER.is_sealed:
            process = spawn(command, marked, merges=stderr == subprocess.STDOUT)
        else:
            process = subprocess.Popen(  # a vfork of about a millisecond, and we watch the pid ourselves
                command,
                env=marked,
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                bufsize=0,
                start_new_session=True,
            )
        try:
            return cls(process)
        except RuntimeError as error:  # no thread to be had: nobody would notice its exit
            process.kill()
            process.wait()
            raise OSError(errno.EAGAIN, str(error)) from error

    async def pump(
        self,
        pipe: IO[bytes] | None,
        on_chunk: Callable[[bytes], None],
        on_end: Callable[[], None] = lambda: None,
    ) -> Output:
        """Read `pipe` from now on; `on_end` is called once, after the last chunk. Neither may raise."""
        return await self.watch_output(Output(self._hand_over(pipe), on_chunk, on_end))

    async def watch_output(self, output: Output) -> Output:
        """The same for an output that is no pipe of ours: a terminal's."""
        self._outputs.append(output)
        await output.connect()
        return output

    def pause_output(self) -> None:
        """Read no more of it for now: the program waits as soon as its pipe is full."""
        for output in self._outputs:
            output.pause()

    def resume_output(self) -> None:
        for output in self._outputs:
            output.resume()

    def take_stdin(self) -> int:
        """The descriptor of its input, for one who writes to it and closes it."""
        if self.stdin is None:
            raise ValueError("this end of the program is no pipe")
        fd = os.dup(self.stdin.fileno())
        self.stdin.close()
        return fd

    async def connect_stdin(self, protocol: asyncio.BaseProtocol) -> asyncio.WriteTransport:
        """A transport for its input; whoever asks closes it."""
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(
            lambda: protocol, self._hand_over(self.stdin)
        )
        return transport

    async def exited(self) -> ExitStatus:
        """Wait for the exit of the program itself: others may still hold its pipes."""
        await self._exit_seen.wait()
        assert self.status is not None  # noqa: S101 - set before the event
        return self.status

    async def exits_within(self, seconds: float) -> bool:
        if self._exit_seen.is_set():
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exit_seen.wait()
        return self._exit_seen.is_set()

    async def last_output(self, within: float = _LAST_OUTPUT) -> None:
        """After the exit: have all that it wrote handed on, though we were slow or somebody else holds its pipes."""
        if not all(output.ended.is_set() for output in self._outputs):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    for output in self._outputs:
                        await output.ended.wait()
        for output in self._outputs:
            output.read_rest()

    def signal_group(self, number: signal.Signals) -> None:
        """Tell the program and all that it started in its group; nothing after `end`."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def signal_session(self, number: signal.Signals) -> None:
        """The same for all of its session: the jobs of an interactive shell have groups of their own.

        Looks at every process of the machine: not for the loop's thread."""
        self.signal_group(number)
        for process in table.everyone().values():
            if process.session == self.pid and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, number)

    async def stop(self, *, grace: float) -> None:
        """TERM, then KILL to the whole group, each after `grace` seconds in which it did not exit by itself."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self.exits_within(grace):
                return
            self.signal_group(number)

    async def end(self, *, within: float = 5.0) -> None:
        """Kill what is left of the group, reap the program and close its pipes. May be called again."""
        self.signal_group(signal.SIGKILL)
        if not await self.exits_within(within):
            self._is_given_up = True  # stuck in the kernel: the watcher reaps it one day
        self.let_go()

    def let_go(self) -> None:
        """Reap the program, if it has exited, and close its pipes. May be called again."""
        if self.status is not None:
            self._reap()
        for output in self._outputs:
            output.close()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None and pipe not in self._handed_over:
                pipe.close()

    def _hand_over(self, pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise ValueError("this end of the program is no pipe")
        self._handed_over.append(pipe)
        return pipe

    def _reap(self) -> None:
        self._process.wait()
        ROSTER.remove(self.pid)

    def _see_exit(self, loop: asyncio.AbstractEventLoop, pidfd: int) -> None:
        """The descriptor of a process is readable once it has exited."""
        loop.remove_reader(pidfd)
        os.close(pidfd)
        self._saw_exit(_wait_for(self.pid))

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """The same in a thread, where the system has no such descriptors."""
        status = _wait_for(self.pid)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            loop.call_soon_threadsafe(self._saw_exit, status)

    def _saw_exit(self, status: ExitStatus) -> None:
        self.status = status
        self._exit_seen.set()
        if self._is_given_up:
            self._reap()


class StartChild(Protocol):
    """As `Child.launch`; a simulation gives programs that live in this process."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str | None,
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> Child: ...


class Output:
    """One pipe of a program, read as it comes. Memory is bounded by whoever takes the chunks."""

    def __init__(self, pipe: IO[bytes], on_chunk: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self.pipe = pipe
        self.ended = asyncio.Event()
        self._on_chunk = on_chunk
        self._on_end = on_end
        self._transport: asyncio.ReadTransport | None = None
        self._is_paused = False

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: _Reader(self._connected, self._read, self._end), self.pipe)

    def pause(self) -> None:
        self._is_paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        self._is_paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def read_rest(self) -> None:
        """What is in the pipe now; after that it counts as ended."""
        if self.ended.is_set() or self._transport is None:
            return
        left = PIPE_SIZE
        with contextlib.suppress(OSError, ValueError):  # it is empty, or closed
            while left > 0 and (chunk := os.read(self.pipe.fileno(), left)):
                left -= len(chunk)
                self._on_chunk(chunk)
        self._end()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _connected(self, transport: asyncio.ReadTransport) -> None:
        """Before the first chunk, which may come before `connect` returns and already be reason to pause."""
        self._transport = transport

    def _read(self, chunk: bytes) -> None:
        self._on_chunk(chunk)
        if len(chunk) >= _LARGE_CHUNK and not self._is_paused and self._transport is not None:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        """After a turn of the loop, in which readers got what came: else one read would follow another for long."""
        if not self._is_paused:
            self.resume()

    def _end(self) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self._on_end()


class PolledOutput(Output):
    """Read without a transport, which takes a while to be made: for programs that end soon, and for terminals.

    Whoever has opened the descriptor closes it afterwards."""

    def __init__(self, fd: int, on_chunk: Callable[[bytes], None], on_end: Callable[[], None] = lambda: None) -> None:
        self.ended = asyncio.Event()
        self._fd = fd
        self._on_chunk = on_chunk
        self._on_end = on_end
        self._is_reading = False
        self._loop = asyncio.get_running_loop()
        os.set_blocking(fd, False)

    async def connect(self) -> None:
        self.resume()

    def pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self._is_reading and not self.ended.is_set():
            self._is_reading = True
            self._loop.add_reader(self._fd, self._read_some)

    def read_rest(self) -> None:
        if not self.ended.is_set():
            for _ in range(PIPE_SIZE // _LARGE_CHUNK):
                if not self._read_some():
                    break
            self.close()

    def close(self) -> None:
        self.pause()
        self._end()

    def _read_some(self) -> bool:
        """Hand on what is there, up to a bound; whether there may be more."""
        try:
            chunk = os.read(self._fd, _LARGE_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if chunk:
            self._on_chunk(chunk)
        else:
            self.close()
        return len(chunk) == _LARGE_CHUNK


class _Reader(asyncio.Protocol):
    def __init__(
        self,
        on_connected: Callable[[asyncio.ReadTransport], None],
        on_chunk: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self.connection_made = on_connected  # type: ignore[assignment,method-assign]
        self.data_received = on_chunk  # type: ignore[assignment,method-assign]  # no method in between on the hot path
        self._on_end = on_end

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


def enlarge(pipe: IO[bytes] | None, size: int) -> None:
    """Fewer wake-ups for the same bytes, where the system lets us."""
    if pipe is not None:
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, size)


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or an old one, or no descriptor is left
        return None


def _wait_for(pid: int) -> ExitStatus:
    """How a child has exited, or will have, without reaping it."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        found = None
    if found is None:
        return ExitStatus(0)  # what subprocess says where SIGCHLD is ignored, and the system reaps
    if found.si_code == os.CLD_EXITED:
        return ExitStatus(found.si_status)
    return ExitStatus(128 + found.si_status, _signal_name(found.si_status))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
