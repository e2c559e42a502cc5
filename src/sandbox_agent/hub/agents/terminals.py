"""Commands that agents run on this host. What they print is for the agent to ask, and told to whoever watches."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import signal
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import msgspec

from sandbox_agent.errors import InvalidParams, NotFound, TooMany
from sandbox_agent.hub.processes.process import Process, Session
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.process import child_environment

Tell = Callable[[dict[str, Any]], None]
"""Gets `terminalId` with `output`, what is new of it, or `exitStatus`; `truncated` when no more will be told."""

_OUTPUT_LIMIT = 1 << 20
_TERMINALS = 256
_KILL_GRACE = 1.0
_TOLD_EVERY = 0.05
_TOLD_LIMIT = 1 << 20
"""Characters of a terminal that are told to those who watch: they go into the history."""


class _EnvVariable(msgspec.Struct):
    name: str
    value: str


class CreateTerminal(msgspec.Struct, rename="camel"):
    command: str
    args: list[str] = []
    env: list[_EnvVariable] = []
    cwd: str | None = None
    output_byte_limit: int | None = None


class _Account:
    """What of a terminal's output has been told, and what will be: many small pieces together."""

    def __init__(self, terminal_id: str, tell: Tell) -> None:
        self._id = terminal_id
        self._tell = tell
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._untold: list[str] = []
        self._room = _TOLD_LIMIT
        self._timer: asyncio.TimerHandle | None = None

    def printed(self, chunk: bytes) -> None:
        if self._room <= 0:
            return
        text = self._decoder.decode(chunk)[: self._room]
        self._room -= len(text)
        self._untold.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TOLD_EVERY, self._tell_untold)

    def exited(self, status: dict[str, Any] | None) -> None:
        self._tell_untold()
        self._tell({"terminalId": self._id, "exitStatus": status})

    def _tell_untold(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        output = "".join(self._untold)
        self._untold.clear()
        if output:
            cut = {} if self._room > 0 else {"truncated": True}
            self._tell({"terminalId": self._id, "output": output, **cut})


class _Terminal:
    """One command: keeps the newest output up to its limit, cut at a character boundary."""

    def __init__(self, process: Process, limit: int, account: _Account | None) -> None:
        self.process = process
        self.output = bytearray()
        self.is_truncated = False
        self.exited = asyncio.Event()
        """Set when the command has ended and what it printed is known, and told."""
        self.watch: asyncio.Task[None] | None = None
        self._limit = limit
        self._account = account
        process.on_output = self._printed

    @property
    def exit_status(self) -> dict[str, Any] | None:
        info = self.process.info
        return None if self.process.is_running else {"exitCode": info.exit_code, "signal": info.signal}

    async def collect(self) -> None:
        await self.process.exited.wait()
        if self._account is not None:
            self._account.exited(self.exit_status)
        self.exited.set()

    def _printed(self, chunk: bytes) -> None:
        if self._account is not None:
            self._account.printed(chunk)
        self.output += chunk
        extra = len(self.output) - self._limit
        if extra > 0:
            self.is_truncated = True
            while extra < len(self.output) and self.output[extra] & 0xC0 == 0x80:
                extra += 1
            del self.output[:extra]


class Terminals:
    """Serves `terminal/*`. They are among the processes of the server, and end with it."""

    def __init__(self, environ: Mapping[str, str], processes: Processes) -> None:
        self._environ = environ
        self._processes = processes
        self._terminals: dict[str, _Terminal] = {}
        self._numbers = count(1)

    async def create(self, wanted: CreateTerminal, session: Session | None, tell: Tell | None) -> dict[str, Any]:
        if len(self._terminals) >= _TERMINALS:
            raise TooMany(f"{_TERMINALS} terminals are open already; release some")
        extra = {variable.name: variable.value for variable in wanted.env}
        # ACP agents send either a program with arguments or a whole shell line as the command.
        command = [wanted.command, *wanted.args] if wanted.args else ["/bin/sh", "-c", wanted.command]
        cwd = wanted.cwd or (session.cwd if session is not None else None)
        env = child_environment(self._environ, extra=extra)
        try:
            process = self._processes.start_for_agent(command, env, cwd, wanted.command, session)
        except (OSError, ValueError) as error:
            raise InvalidParams(f"terminal command {wanted.command!r} cannot be started: {error}") from None
        limit = _OUTPUT_LIMIT if wanted.output_byte_limit is None else min(wanted.output_byte_limit, _OUTPUT_LIMIT)
        terminal_id = f"host-terminal-{next(self._numbers)}"
        terminal = _Terminal(process, limit, _Account(terminal_id, tell) if tell is not None else None)
        self._terminals[terminal_id] = terminal
        terminal.watch = asyncio.create_task(terminal.collect(), name=terminal_id)
        return {"terminalId": terminal_id}

    async def call(self, method: str, terminal_id: str) -> dict[str, Any]:
        terminal = self._terminals.get(terminal_id)
        if terminal is None:
            raise NotFound(f"no terminal {terminal_id!r}")
        match method:
            case "terminal/output":
                text = bytes(terminal.output).decode(errors="replace")
                return {"output": text, "truncated": terminal.is_truncated, "exitStatus": terminal.exit_status}
            case "terminal/wait_for_exit":
                await terminal.exited.wait()  # as long as the command takes; the agent can kill it
                return terminal.exit_status or {}
            case "terminal/kill":
                await terminal.process.signal(signal.SIGKILL)
                return {}
            case "terminal/release":
                await self._release(terminal_id)
                return {}
        raise NotFound(f"no method {method!r}")

    async def close(self) -> None:
        await asyncio.gather(*(self._release(terminal_id) for terminal_id in list(self._terminals)))

    async def _release(self, terminal_id: str) -> None:
        terminal = self._terminals.pop(terminal_id, None)
        if terminal is None:
            return
        await terminal.process.release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_GRACE):
                await terminal.exited.wait()
        if terminal.watch is not None:
            terminal.watch.cancel()
