"""Commands that agents run on this host. What they print is for the agent to ask, and told to whoever watches."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from sandbox_agent.errors import InvalidParams, NotFound, TooMany
from sandbox_agent.process import agent_environment

Tell = Callable[[dict[str, Any]], None]
"""Gets `terminalId` with `output`, what is new of it, or `exitStatus`; `truncated` when no more will be told."""

TERMINAL_OUTPUT = "_sandboxagent/terminal/output"
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


@dataclass(slots=True)
class _Terminal:
    process: asyncio.subprocess.Process
    limit: int
    account: _Account | None
    output: bytearray = field(default_factory=bytearray)
    is_truncated: bool = False
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    pump: asyncio.Task[None] | None = None

    @property
    def exit_status(self) -> dict[str, Any] | None:
        code = self.process.returncode
        if code is None:
            return None
        if code >= 0:
            return {"exitCode": code, "signal": None}
        with contextlib.suppress(ValueError):
            return {"exitCode": None, "signal": signal.Signals(-code).name}
        return {"exitCode": None, "signal": str(-code)}


class Terminals:
    """Serves `terminal/*`. They die with it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._terminals: dict[str, _Terminal] = {}
        self._numbers = count(1)

    async def create(self, wanted: CreateTerminal, cwd: str | None, tell: Tell | None) -> dict[str, Any]:
        if len(self._terminals) >= _TERMINALS:
            raise TooMany(f"{_TERMINALS} terminals are open already; release some")
        extra = {variable.name: variable.value for variable in wanted.env}
        # ACP agents send either a program with arguments or a whole shell line as the command.
        program = [wanted.command, *wanted.args] if wanted.args else ["/bin/sh", "-c", wanted.command]
        try:
            process = await asyncio.create_subprocess_exec(
                *program,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=wanted.cwd or cwd,
                env=agent_environment(self._environ, extra=extra),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise InvalidParams(f"terminal command {wanted.command!r} cannot be started: {error}") from None
        limit = _OUTPUT_LIMIT if wanted.output_byte_limit is None else min(wanted.output_byte_limit, _OUTPUT_LIMIT)
        terminal_id = f"host-terminal-{next(self._numbers)}"
        terminal = _Terminal(process, limit, _Account(terminal_id, tell) if tell is not None else None)
        self._terminals[terminal_id] = terminal
        terminal.pump = asyncio.create_task(_collect(terminal), name=terminal_id)
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
                _signal(terminal, signal.SIGKILL)
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
        _signal(terminal, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_GRACE):
                await terminal.exited.wait()
        if terminal.pump is not None:
            terminal.pump.cancel()


async def _collect(terminal: _Terminal) -> None:
    """Keep the newest output up to the limit, cut at a character boundary, until the command ends."""
    reading = asyncio.create_task(_read_output(terminal))
    try:
        await terminal.process.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):  # what a background child writes later is not the command's output
                await asyncio.shield(reading)
    finally:
        reading.cancel()
        if terminal.account is not None:
            terminal.account.exited(terminal.exit_status)
        terminal.exited.set()


async def _read_output(terminal: _Terminal) -> None:
    stdout = terminal.process.stdout
    while stdout is not None and (chunk := await stdout.read(1 << 16)):
        if terminal.account is not None:
            terminal.account.printed(chunk)
        terminal.output += chunk
        extra = len(terminal.output) - terminal.limit
        if extra > 0:
            terminal.is_truncated = True
            while extra < len(terminal.output) and terminal.output[extra] & 0xC0 == 0x80:
                extra += 1
            del terminal.output[:extra]


def _signal(terminal: _Terminal, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(terminal.process.pid, number)
