"""`_sandboxagent/fs/*`: the file service for clients that speak ACP only. Bytes travel as base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.errors import InvalidParams
from sandbox_agent.files import FileService
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.extensions.extensions import Method
from sandbox_agent.hub.sessions.sessions import Sessions


class _OnPath(msgspec.Struct, rename="camel"):
    path: str
    recursive: bool = False


class _Listed(msgspec.Struct):
    path: str = "."


class _Content(msgspec.Struct, rename="camel"):
    path: str
    content: str


class _Move(msgspec.Struct, rename={"source": "from", "target": "to"}):
    source: str
    target: str
    overwrite: bool = False


class FileExtensions:
    """Each method takes the query of its twin under `/v1/fs` as params; relative paths start at the session's cwd."""

    def __init__(self, files: FileService, sessions: Sessions) -> None:
        self._files = files
        self._sessions = sessions
        self.methods: dict[str, Method] = {
            "_sandboxagent/fs/list_entries": self._list_entries,
            "_sandboxagent/fs/read_file": self._read_file,
            "_sandboxagent/fs/write_file": self._write_file,
            "_sandboxagent/fs/delete_entry": self._delete_entry,
            "_sandboxagent/fs/mkdir": self._mkdir,
            "_sandboxagent/fs/move": self._move,
            "_sandboxagent/fs/stat": self._stat,
            "_sandboxagent/fs/upload_batch": self._upload_batch,
        }

    async def _list_entries(self, request: Request) -> dict[str, Any]:
        path = request.read(_Listed).path
        return {"entries": await self._files.list_entries(path, base=await self._base(request))}

    async def _read_file(self, request: Request) -> dict[str, Any]:
        path = request.read(_OnPath).path
        content = await self._files.read_bytes(path, base=await self._base(request))
        return {"path": path, "size": len(content), "content": base64.b64encode(content).decode()}

    async def _write_file(self, request: Request) -> Any:
        wanted = request.read(_Content)
        content = _decoded(wanted.content, request.method)
        return await self._files.write_bytes(wanted.path, content, base=await self._base(request))

    async def _delete_entry(self, request: Request) -> Any:
        wanted = request.read(_OnPath)
        return await self._files.delete(wanted.path, recursive=wanted.recursive, base=await self._base(request))

    async def _mkdir(self, request: Request) -> Any:
        return await self._files.mkdir(request.read(_OnPath).path, base=await self._base(request))

    async def _move(self, request: Request) -> Any:
        wanted = request.read(_Move)
        base = await self._base(request)
        return await self._files.move(wanted.source, wanted.target, overwrite=wanted.overwrite, base=base)

    async def _stat(self, request: Request) -> Any:
        return await self._files.stat(request.read(_OnPath).path, base=await self._base(request))

    async def _upload_batch(self, request: Request) -> Any:
        wanted = request.read(_Content)
        archive = _decoded(wanted.content, request.method)
        return await self._files.upload_batch(wanted.path, _once(archive), base=await self._base(request))

    async def _base(self, request: Request) -> Path | None:
        """Where relative paths start: the cwd of the session that the params name. Raises UnknownSession."""
        if request.frame.session is None:
            return None
        record = await self._sessions.look_up(request.target())
        return Path(record.cwd) if record.cwd else None


def _decoded(content: str, method: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParams(f"params of {method}: content must be base64") from None


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
