"""Commands that people and programs run in the sandbox: to their end, or in the background with a log and an input.

The same list has what agents run. Nothing outlives the server; what is known of those that ended does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from sandbox_agent.errors import Conflict, Forbidden, InvalidParams, NotFound, ShuttingDown, TooLarge
from sandbox_agent.files import FileService
from sandbox_agent.files.service import Directory
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.processes.process import NOTE, Process, Session, restored
from sandbox_agent.hub.processes.run import run
from sandbox_agent.hub.processes.views import (
    Owner,
    ProcessConfig,
    ProcessInfo,
    ProcessResult,
    RunProcess,
    StartProcess,
    TerminalSize,
)
from sandbox_agent.process import OutputLog, child_environment
from sandbox_agent.process.table import is_alive, own_name

_log = logging.getLogger(__name__)
_INPUT_SECONDS = 10.0
"""How long one request waits for a process to read its input."""
_WAIT_LIMIT = 300.0
_YOUNG = 60.0
"""Seconds for which a folder without a note may be one that another server is just making."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    folder: Path
    """Where logs are kept, and what is known of those that have exited."""
    limits: ProcessConfig
    is_allowed: bool
    exited: int
    """Processes that have exited and are still listed; the oldest go."""
    stop_grace: float


class Processes:
    def __init__(self, environ: Mapping[str, str], files: FileService, feed: Feed, options: ProcessOptions) -> None:
        self.limits = options.limits
        self._options = options
        self._folder = options.folder
        self.environ = environ
        self._files = files
        self._feed = feed
        self._processes: dict[str, Process] = {}
        self._watching: dict[asyncio.Task[None], Process] = {}
        self._commands: dict[asyncio.Task[Any], asyncio.Future[None]] = {}
        """Who waits for a command, and its end. These count as processes, and are not listed."""
        self._is_closed = False

    async def restore(self) -> None:
        """List what earlier servers on the same data have run. None of it is running any more."""
        for process in await asyncio.to_thread(self._restored):
            self._processes.setdefault(process.info.id, process)
        self._forget_old()

    def require_allowed(self) -> None:
        if not self._options.is_allowed:
            raise Forbidden("processes are turned off on this server (setting `processes = false`)")

    def configure(self, limits: ProcessConfig) -> ProcessConfig:
        self.limits = limits
        return limits

    async def run(self, wanted: RunProcess, session: Session | None = None) -> ProcessResult:
        """Raises InvalidParams for what cannot be started, Conflict when there are too many, Forbidden."""
        limits = self.limits
        wait = limits.default_run_timeout_ms if wanted.timeout_ms is None else wanted.timeout_ms
        most = limits.max_output_bytes
        async with self._launching(wanted, session) as (program, env, cwd):
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - there is one wherever something can be awaited
            ended = self._commands[task] = asyncio.get_running_loop().create_future()
            try:
                return await run(
                    [program, *wanted.args],
                    env,
                    cwd,
                    timeout=min(wait, limits.max_run_timeout_ms) / 1000,
                    output_bytes=most if wanted.max_output_bytes is None else min(most, wanted.max_output_bytes),
                )
            finally:
                del self._commands[task]
                if not ended.done():  # else who waited for it was cancelled
                    ended.set_result(None)

    async def start(self, wanted: StartProcess, session: Session | None = None) -> ProcessInfo:
        """Raises as `run`."""
        async with self._launching(wanted, session) as (program, env, cwd):
            info = ProcessInfo(
                id=_new_id(),
                command=wanted.command,
                args=wanted.args,
                tty=wanted.tty,
                interactive=wanted.interactive,
                owner="user",
                status="running",
                created_at_ms=time.time_ns() // 1_000_000,
                cwd=wanted.cwd if session is None or wanted.cwd is not None else session.cwd,
                agent=None if session is None else session.agent,
                session_id=None if session is None else session.id,
            )
            process = Process(info, self._new_log(info), own_name())
            if wanted.tty:
                env.setdefault("TERM", "xterm-256color")
            process.start([program, *wanted.args], env, cwd, size=TerminalSize(wanted.cols, wanted.rows))
            if wanted.hold:
                process.hold.keep(0)
        self._watch(process)
        return process.info

    def start_for_agent(
        self, command: Sequence[str], env: Mapping[str, str], cwd: str | None, shown: str, session: Session | None
    ) -> Process:
        """A command of an agent, listed as `shown`; how many there are is for the caller to bound.

        Raises OSError, ValueError."""
        info = ProcessInfo(
            id=_new_id(),
            command=shown,
            args=list(command[1:]) if shown == command[0] else [],
            tty=False,
            interactive=False,
            owner="agent",
            status="running",
            created_at_ms=time.time_ns() // 1_000_000,
            cwd=cwd,
            agent=None if session is None else session.agent,
            session_id=None if session is None else session.id,
        )
        process = Process(info, self._new_log(info), own_name(), keeps_group=True)
        process.start(command, env, cwd, size=TerminalSize(80, 24), merges=True)
        self._watch(process)
        return process

    def listed(self, owner: Owner | None = None) -> list[ProcessInfo]:
        return [process.info for process in self._processes.values() if owner in (None, process.info.owner)]

    def get(self, process_id: str) -> Process:
        """Raises NotFound."""
        process = self._processes.get(process_id)
        if process is None:
            raise NotFound(f"no process {process_id[:100]!r}", id=process_id[:100])
        return process

    async def stop(self, process_id: str, *, wait: float = 0.0, number: signal.Signals = signal.SIGTERM) -> ProcessInfo:
        return await self._signal(process_id, number, wait)

    async def kill(self, process_id: str, *, wait: float = 0.0) -> ProcessInfo:
        return await self._signal(process_id, signal.SIGKILL, wait)

    async def delete(self, process_id: str) -> None:
        """Forget it, and its log. Raises Conflict while it runs."""
        process = self.get(process_id)
        if process.is_running:
            raise Conflict(f"process {process_id!r} is running; stop or kill it first")
        self._forget(process)

    async def write(self, process_id: str, content: bytes, *, is_last: bool = False) -> int:
        """How many bytes it has read in time. Raises TooLarge, Conflict."""
        most = self.limits.max_input_bytes_per_request
        if len(content) > most:
            raise TooLarge(
                f"an input of {len(content)} bytes is over the limit of {most}; send it in parts", limit=most
            )
        process = self.get(process_id)
        written = await process.write(content, within=_INPUT_SECONDS)
        if is_last and written == len(content):
            process.close_input()
        return written

    def resize(self, process_id: str, size: TerminalSize) -> TerminalSize:
        self.get(process_id).resize(size)
        return size

    async def close(self) -> None:
        """End them all at once, each by TERM, then KILL."""
        self._is_closed = True
        commands = list(self._commands.values())
        for waiting in self._commands:
            waiting.cancel()
        running = [process for process in self._processes.values() if process.is_running]
        grace = self._options.stop_grace
        await asyncio.gather(*(process.stop(grace=grace) for process in running), return_exceptions=True)
        await asyncio.gather(*self._watching, *commands, return_exceptions=True)

    @asynccontextmanager
    async def _launching(
        self, wanted: RunProcess | StartProcess, session: Session | None
    ) -> AsyncIterator[tuple[str, dict[str, str], str | None]]:
        """Program, environment and directory, checked; why it cannot be started is said in the caller's words."""
        self.require_allowed()
        _check(wanted)
        if self._is_closed:
            raise ShuttingDown("the server is shutting down")
        base = Path(session.cwd) if session is not None and session.cwd else None
        env = child_environment(self.environ, extra=wanted.env)
        with await self._directory(wanted.cwd, base) as directory:
            most = self.limits.max_concurrent_processes
            if len(self._commands) + sum(info.status == "running" for info in self.listed("user")) >= most:
                raise Conflict(f"process limit ({most}) reached; stop one, or raise maxConcurrentProcesses", limit=most)
            env["PWD"] = directory.path
            program = _find(wanted.command, env, directory.path)
            try:
                yield program, env, directory.handle
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                raise InvalidParams(
                    f"command {wanted.command[:200]!r} cannot be started: {reason}", field="command"
                ) from None

    async def _directory(self, cwd: str | None, base: Path | None) -> Directory:
        try:
            return await self._files.open_directory(cwd, base=base)
        except NotFound as error:
            raise InvalidParams(f"cwd: {error.detail}", field="cwd") from None

    def _new_log(self, info: ProcessInfo) -> OutputLog:
        return OutputLog(self._folder / info.id, limit=self.limits.max_log_bytes_per_process)

    def _watch(self, process: Process) -> None:
        self._processes[process.info.id] = process
        process.on_end = lambda: self._feed.tell("process.exited", lambda: {"process": process.info})
        task = asyncio.get_running_loop().create_task(process.watch(), name=process.info.id)
        self._watching[task] = process
        task.add_done_callback(self._ended)
        self._feed.tell("process.started", lambda: {"process": process.info})

    def _ended(self, task: asyncio.Task[None]) -> None:
        process = self._watching.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("watching a process failed process=%s", process.info.id, exc_info=error)
        self._forget_old()

    async def _signal(self, process_id: str, number: signal.Signals, wait: float) -> ProcessInfo:
        process = self.get(process_id)
        await process.signal(number)
        if wait > 0:
            await process.ends_within(min(wait, _WAIT_LIMIT))
        return process.info

    def _forget_old(self) -> None:
        exited = [process for process in self._processes.values() if not process.is_running]
        for process in exited[: max(0, len(exited) - self._options.exited)]:
            self._forget(process)

    def _forget(self, process: Process) -> None:
        del self._processes[process.info.id]
        process.log.remove()
        self._feed.tell("process.deleted", lambda: {"processId": process.info.id})

    def _restored(self) -> list[Process]:
        found: list[Process] = []
        try:
            folders = [folder for folder in self._folder.iterdir() if folder.is_dir()]
        except OSError:
            return []
        for folder in folders:
            try:
                limit = self.limits.max_log_bytes_per_process
                process = restored(folder, limit=limit, is_running=is_alive)
            except (OSError, ValueError) as error:
                if not (folder / NOTE).exists() and time.time() - folder.stat().st_mtime > _YOUNG:
                    shutil.rmtree(folder, ignore_errors=True)
                _log.warning("a process of an earlier server cannot be read folder=%s error=%s", folder, error)
            else:
                found += [process] if process is not None else []
        return sorted(found, key=lambda process: process.info.created_at_ms)


def _check(wanted: RunProcess | StartProcess) -> None:
    if not wanted.command.strip():
        raise InvalidParams("command must not be empty", field="command")
    for field, values in (
        ("command", [wanted.command]),
        ("args", wanted.args),
        ("env", [*wanted.env, *wanted.env.values()]),
    ):
        if any("\0" in value for value in values):
            raise InvalidParams(f"{field} has a NUL character in it", field=field)
        if any(_is_no_unicode(value) for value in values):
            raise InvalidParams(f"{field} is not valid Unicode", field=field)
    for name in wanted.env:
        if not name or "=" in name:
            raise InvalidParams(f"env: {name[:100]!r} is not a name for an environment variable", field="env")


def _is_no_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def _find(command: str, env: Mapping[str, str], cwd: str) -> str:
    """Where the program is, looked for as the program's own environment says. Raises InvalidParams."""
    if "/" in command:
        path = command if command.startswith("/") else f"{cwd}/{command}"
        found = shutil.which(path)
    else:
        found = shutil.which(command, path=env.get("PATH", os.defpath))
    if found is None:
        raise InvalidParams(f"command {command[:200]!r} is not a program that can be found and run", field="command")
    return found if "/" in found else f"{cwd}/{found}"


def _new_id() -> str:
    return f"proc_{uuid4().hex[:16]}"
