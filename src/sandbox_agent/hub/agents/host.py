"""Files and terminals on this host, for agents that ask while no attached client offers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sandbox_agent.errors import InvalidParams
from sandbox_agent.files import FileService
from sandbox_agent.hub.agents.terminals import CreateTerminal, Tell, Terminals
from sandbox_agent.hub.processes.process import Session
from sandbox_agent.hub.processes.processes import Processes

_FILE_LIMIT = 64 << 20


class _ReadTextFile(msgspec.Struct, rename="camel"):
    path: str
    line: int | None = None
    limit: int | None = None


class _WriteTextFile(msgspec.Struct, rename="camel"):
    path: str
    content: str


class _TerminalParams(msgspec.Struct, rename="camel"):
    terminal_id: str


class Host:
    """Serves `fs/*`, within the roots of `files`, and `terminal/*`."""

    def __init__(self, environ: Mapping[str, str], files: FileService, processes: Processes) -> None:
        self._files = files
        self._terminals = Terminals(environ, processes)

    async def serve(self, method: str, params: bytes, session: Session | None, tell: Tell | None = None) -> Any:
        """The result for the agent; `tell` hears what a new terminal prints. Raises a SandboxAgentError."""
        try:
            match method:
                case "fs/read_text_file":
                    return await self._read_text_file(msgspec.json.decode(params, type=_ReadTextFile))
                case "fs/write_text_file":
                    return await self._write_text_file(msgspec.json.decode(params, type=_WriteTextFile))
                case "terminal/create":
                    wanted = msgspec.json.decode(params, type=CreateTerminal)
                    return await self._terminals.create(wanted, session, tell)
                case _:
                    terminal_id = msgspec.json.decode(params, type=_TerminalParams).terminal_id
                    return await self._terminals.call(method, terminal_id)
        except msgspec.MsgspecError as error:
            raise InvalidParams(f"params of {method}: {error}") from None

    async def close(self) -> None:
        await self._terminals.close()

    async def _read_text_file(self, wanted: _ReadTextFile) -> dict[str, Any]:
        content = await self._files.read_bytes(_absolute(wanted.path), limit=_FILE_LIMIT)
        text = content.decode("utf-8", errors="replace")
        if wanted.line is not None or wanted.limit is not None:
            lines = text.splitlines(keepends=True)[max(0, (wanted.line or 1) - 1) :]
            text = "".join(lines if wanted.limit is None else lines[: wanted.limit])
        return {"content": text}

    async def _write_text_file(self, wanted: _WriteTextFile) -> dict[str, Any]:
        content = wanted.content.encode("utf-8", errors="replace")
        path = _absolute(wanted.path)
        await self._files.write_bytes(path, content, limit=len(content))  # one line of the agent's: bounded already
        return {}


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise InvalidParams(f"path must be absolute: {path!r}")
    return path
