"""Files and terminals on this host, for agents that ask while no attached client offers them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from sandbox_agent.errors import InvalidParams, NotFound, TooLarge, TooMany
from sandbox_agent.files import FileService
from sandbox_agent.process import agent_environment

_OUTPUT_LIMIT = 1 << 20
_FILE_LIMIT = 64 << 20
_TERMINALS = 256
_KILL_GRACE = 1.0


class _ReadTextFile(msgspec.Struct, rename="camel"):
    path: str
    line: int | None = None
    limit: int | None = None


class _WriteTextFile(msgspec.Struct, rename="camel"):
    path: str
    content: str


class _EnvVariable(msgspec.Struct):
    name: str
    value: str


class _CreateTerminal(msgspec.Struct, rename="camel"):
    command: str
    args: list[str] = []
    env: list[_EnvVariable] = []
    cwd: str | None = None
    output_byte_limit: int | None = None


class _TerminalParams(msgspec.Struct, rename="camel"):
    terminal_id: str


@dataclass(slots=True)
class _Terminal:
    process: asyncio.subprocess.Process
    limit: int
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


class Host:
    """Serves `fs/*`, within the roots of `files`, and `terminal/*`. Terminals die with it."""

    def __init__(self, environ: Mapping[str, str], files: FileService) -> None:
        self._environ = environ
        self._files = files
        self._terminals: dict[str, _Terminal] = {}
        self._numbers = count(1)

    async def serve(self, method: str, params: bytes, cwd: str | None) -> Any:
        """The result for the agent. Raises a SandboxAgentError that says what was wrong."""
        try:
            match method:
                case "fs/read_text_file":
                    return await self._read_text_file(msgspec.json.decode(params, type=_ReadTextFile))
                case "fs/write_text_file":
                    return await self._write_text_file(msgspec.json.decode(params, type=_WriteTextFile))
                case "terminal/create":
                    return await self._create(msgspec.json.decode(params, type=_CreateTerminal), cwd)
                case _:
                    terminal_id = msgspec.json.decode(params, type=_TerminalParams).terminal_id
                    return await self._terminal_call(method, terminal_id)
        except msgspec.MsgspecError as error:
            raise InvalidParams(f"params of {method}: {error}") from None

    async def close(self) -> None:
        terminals = list(self._terminals)
        await asyncio.gather(*(self._release(terminal_id) for terminal_id in terminals))

    async def _read_text_file(self, wanted: _ReadTextFile) -> dict[str, Any]:
        async with await self._files.open_for_read(_absolute(wanted.path)) as file:
            if file.size > _FILE_LIMIT:
                raise TooLarge(f"{wanted.path!r} is larger than {_FILE_LIMIT >> 20} MiB")
            content = b"".join([chunk async for chunk in file.chunks()])
        text = content.decode("utf-8", errors="replace")
        if wanted.line is not None or wanted.limit is not None:
            lines = text.splitlines(keepends=True)[max(0, (wanted.line or 1) - 1) :]
            text = "".join(lines if wanted.limit is None else lines[: wanted.limit])
        return {"content": text}

    async def _write_text_file(self, wanted: _WriteTextFile) -> dict[str, Any]:
        content = wanted.content.encode("utf-8", errors="replace")
        await self._files.write_stream(_absolute(wanted.path), _once(content))
        return {}

    async def _create(self, wanted: _CreateTerminal, cwd: str | None) -> dict[str, Any]:
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
        terminal = _Terminal(process, limit)
        terminal_id = f"host-terminal-{next(self._numbers)}"
        self._terminals[terminal_id] = terminal
        terminal.pump = asyncio.create_task(_collect(terminal), name=terminal_id)
        return {"terminalId": terminal_id}

    async def _terminal_call(self, method: str, terminal_id: str) -> dict[str, Any]:
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
        terminal.exited.set()


async def _read_output(terminal: _Terminal) -> None:
    stdout = terminal.process.stdout
    while stdout is not None and (chunk := await stdout.read(1 << 16)):
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


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise InvalidParams(f"path must be absolute: {path!r}")
    return path


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
