"""One process that somebody has started: its program, its output as a numbered log, its input, its terminal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from sandbox_agent.errors import Conflict
from sandbox_agent.hub.processes.hold import Hold
from sandbox_agent.hub.processes.views import ProcessInfo, TerminalSize
from sandbox_agent.process import Child, ExitStatus, OutputLog, ProgramInput, Pty, PtyOutput
from sandbox_agent.process.child import enlarge
from sandbox_agent.process.output_log import Stream

_log = logging.getLogger(__name__)
NOTE = "process.json"
_LAST_OUTPUT = 0.2
"""Seconds after the exit for which somebody outside its group may hold its output open."""
_KILLED = 1.0
_PIPE_SIZE = 1 << 18
"""The system has a bound for all pipes of a user together: a quarter of what an agent's have."""

Heard = Callable[[bytes], None]


class Session(msgspec.Struct, frozen=True):
    """Whose process it is: it starts in `cwd` if nothing else is said."""

    id: str
    agent: str
    cwd: str | None


class Process:
    """Create with `start`; then `watch` runs until it has ended. What is known of it is in `info`.

    With `keeps_group`, what it has left in its group runs on until `release`."""

    def __init__(self, info: ProcessInfo, log: OutputLog, run: str = "", *, keeps_group: bool = False) -> None:
        self.info = info
        self.log = log
        self.size: TerminalSize | None = None
        self.exited = asyncio.Event()
        """Set when it has ended and its last output is in the log."""
        self.on_output: Heard | None = None
        """Hears what comes, besides the log."""
        self.on_end: Callable[[], None] = lambda: None
        self.on_resize: set[Callable[[], None]] = set()
        self.hold = Hold(log, self._pause, self._resume)
        self._run = run
        self._keeps_group = keeps_group
        self._child: Child | None = None
        self._pty: Pty | None = None
        self._input: ProgramInput | None = None

    @property
    def is_running(self) -> bool:
        return self.info.status == "running"

    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        *,
        size: TerminalSize,
        merges: bool = False,
    ) -> None:
        """Launch `command`; `merges` puts both of its streams into one. Raises OSError, ValueError."""
        info = self.info
        if info.tty:
            pty = Pty(size.cols, size.rows)
            try:
                child = Child.launch(
                    pty.command(command),
                    env=env,
                    cwd=cwd,
                    stdin=pty.slave,
                    stdout=pty.slave,
                    stderr=pty.slave,
                )
            except BaseException:
                pty.close()
                raise
            self._pty, self.size = pty, size
            self._input = ProgramInput(os.dup(pty.master))
        else:
            child = Child.launch(
                command,
                env=env,
                cwd=cwd,
                stdin=subprocess.PIPE if info.interactive else subprocess.DEVNULL,
                stderr=subprocess.STDOUT if merges else subprocess.PIPE,
            )
            if info.interactive:
                self._input = ProgramInput(child.take_stdin())
        self._child = child
        info.pid = child.pid
        self.note()

    async def watch(self) -> None:
        """Take in what it prints until it has exited, and all that it started with it."""
        child = self._child
        assert child is not None  # noqa: S101 - `start` came before
        try:
            if self._pty is not None:
                await child.watch_output(PtyOutput(self._pty.master, partial(self._printed, "pty")))
            else:
                await self._pump("stdout", child.stdout)
                await self._pump("stderr", child.stderr)
            await child.exited()
        finally:
            await asyncio.shield(self._finish(child))

    async def signal(self, number: signal.Signals) -> None:
        """Tell the whole group, and those of its terminal. Nothing for one that has exited."""
        child = self._child
        if child is None or child.status is not None:
            return
        if self._pty is None:
            child.signal_group(number)
            return
        await asyncio.to_thread(child.signal_session, number)
        if number is signal.SIGTERM:  # interactive shells take no notice of TERM
            child.signal_group(signal.SIGHUP)

    async def ends_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.exited.wait()
        return self.exited.is_set()

    async def stop(self, *, grace: float) -> None:
        """TERM, then KILL; each is given `grace` seconds."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            await self.signal(number)
            if await self.ends_within(grace):
                return

    async def write(self, content: bytes, *, within: float | None = None) -> int:
        """How many bytes it took. Waits for as long as it does not read, or `within` seconds. Raises Conflict."""
        return await self._writable().write(content, within=within)

    def close_input(self) -> None:
        """Its input is at the end. On a terminal that is what Ctrl-D says. Raises Conflict."""
        if self._pty is None:
            self._writable().close()

    def resize(self, size: TerminalSize) -> None:
        """Raises Conflict."""
        if not self.info.tty:
            raise Conflict(f"process {self.info.id!r} has no terminal; start it with tty")
        if self._pty is None:
            raise Conflict(f"process {self.info.id!r} is not running")
        self.size = size
        self._pty.resize(size.cols, size.rows)
        self.tell_size()

    def tell_size(self) -> None:
        """To all who watch; also when somebody else decides about it now."""
        for tell in self.on_resize:
            tell()

    async def release(self) -> None:
        """End it, and whatever it has left in its group."""
        await self.signal(signal.SIGKILL)
        if self._child is not None:
            await self.ends_within(_KILLED)
            await self._child.end(within=_KILLED)

    def note(self) -> None:
        """Write down what is known, for the next server on the same data."""
        folder = self.log.folder
        body = msgspec.json.encode({"run": self._run, "info": self.info})
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = folder / f"{NOTE}.new"
            draft.write_bytes(body)
            draft.replace(folder / NOTE)
        except OSError as error:
            _log.warning("process cannot be noted process=%s error=%s", self.info.id, error.strerror)

    def _writable(self) -> ProgramInput:
        if not self.is_running:
            raise Conflict(f"process {self.info.id!r} is not running")
        if self._input is None:
            raise Conflict(f"process {self.info.id!r} has no input; start it with interactive or tty")
        if self._input.is_closed:
            raise Conflict(f"the input of process {self.info.id!r} is closed")
        return self._input

    async def _pump(self, stream: Stream, pipe: IO[bytes] | None) -> None:
        if pipe is not None and self._child is not None:
            enlarge(pipe, _PIPE_SIZE)
            await self._child.pump(pipe, partial(self._printed, stream))

    def _printed(self, stream: Stream, chunk: bytes) -> None:
        if self.exited.is_set():
            return
        self.log.append(stream, chunk, time.time_ns() // 1_000_000)
        self.hold.check()
        if self.on_output is not None:
            self.on_output(chunk)

    def _pause(self) -> None:
        if self._child is not None:
            self._child.pause_output()

    def _resume(self) -> None:
        if self._child is not None and self.is_running:
            self._child.resume_output()

    async def _finish(self, child: Child) -> None:
        if self._pty is not None:
            await asyncio.to_thread(child.signal_session, signal.SIGKILL)
        elif not self._keeps_group or child.status is None:
            child.signal_group(signal.SIGKILL)  # what it has left behind, too
        await child.exits_within(_KILLED)
        await child.last_output(0.0 if self._pty is not None else _LAST_OUTPUT)
        if self._input is not None:
            self._input.close()
        if not self._keeps_group:
            await child.end()
        if self._pty is not None:
            self._pty.close()
            self._pty = None
        self.ended(child.status or ExitStatus(137, "SIGKILL"))

    def ended(self, status: ExitStatus, *, is_lost: bool = False) -> None:
        info = self.info
        info.status, info.pid, info.exited_at_ms = "exited", None, time.time_ns() // 1_000_000
        info.exit_code, info.signal = (None, status.signal) if status.signal else (status.code, None)
        info.lost = is_lost
        self.log.end()
        self.note()
        self.on_end()
        self.exited.set()


class _Note(msgspec.Struct):
    run: str
    info: ProcessInfo


def restored(folder: Path, *, limit: int, is_running: Callable[[str], bool]) -> Process | None:
    """What an earlier server has noted, at rest; None where its server runs still. Raises OSError, ValueError."""
    noted = msgspec.json.decode((folder / NOTE).read_bytes(), type=_Note)
    if is_running(noted.run):
        return None
    process = Process(noted.info, OutputLog.restored(folder, limit=limit), noted.run)
    if process.is_running:
        process.ended(ExitStatus(137, "SIGKILL"), is_lost=True)
    process.exited.set()
    return process
