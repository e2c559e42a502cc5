"""`/v1/fs/*`: the file service over HTTP."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec

from sandbox_agent.core.ids import SessionName
from sandbox_agent.errors import (
    BadArchive,
    Conflict,
    Forbidden,
    InvalidParams,
    NotFound,
    RangeNotSatisfiable,
    TooLarge,
    TooMany,
    UnknownSession,
    UnsupportedMediaType,
    UploadStalled,
)
from sandbox_agent.files import FileService, results
from sandbox_agent.http.api.download import send_file
from sandbox_agent.http.asgi.exchange import Exchange, media_type
from sandbox_agent.http.asgi.routes import Content, Operation
from sandbox_agent.hub.hub import Hub


class PathQuery(msgspec.Struct, rename="camel"):
    """Relative paths start at the working directory of the session, if given, or of the server."""

    path: str
    session_id: str | None = None


class EntriesQuery(msgspec.Struct, rename="camel"):
    """Without a path, the working directory itself."""

    path: str = "."
    session_id: str | None = None


class DeleteQuery(PathQuery, rename="camel"):
    recursive: bool = False


class SessionIdQuery(msgspec.Struct, rename="camel"):
    session_id: str | None = None


class MoveBody(msgspec.Struct, rename={"source": "from", "target": "to"}):
    source: str
    target: str
    overwrite: bool = False


_ERRORS = (InvalidParams, Forbidden, NotFound, Conflict, TooMany, UnknownSession)
_BYTES = Content(("application/octet-stream",), {"type": "string", "format": "binary"})
_TAR_TYPES = ("application/x-tar", "application/gzip", "application/x-gtar", "application/x-tar+gzip")
_TAR = Content(_TAR_TYPES, {"type": "string", "format": "binary"})
_READING = (
    "Streamed. `Range` with one range returns `206`; with several, the whole file. `If-Range` is honoured, and "
    "`If-None-Match` with the current `ETag` returns `304`."
)
_RANGE = ("Range", "One range of bytes: `bytes=0-99`, `bytes=100-` or `bytes=-100`.", False)
_WRITING = (
    "Streamed, any size. Missing directories are created. The file is replaced once the upload is complete; an "
    "interrupted upload changes nothing."
)
_UNPACKING = "All or nothing: an archive that is damaged, too large or unsafe changes nothing."
_READ_ERRORS = (*_ERRORS, 206, 304, RangeNotSatisfiable)
_WRITE_ERRORS = (*_ERRORS, TooLarge, UploadStalled, 507)
_MOVE_ERRORS = (*_ERRORS, UnsupportedMediaType, TooLarge, 507)
_UNPACK_ERRORS = (*_WRITE_ERRORS, BadArchive, UnsupportedMediaType)
_operation = partial(Operation, tag="files", query=PathQuery, errors=_ERRORS)

LIST_ENTRIES = _operation(
    "listEntries",
    "List a directory",
    description="Without `path`, the working directory of the session, if given, or of the server.",
    query=EntriesQuery,
    returns=list[results.FsEntry],
)
READ_FILE = _operation(
    "readFile", "Download a file", description=_READING, returns=_BYTES, errors=_READ_ERRORS, headers=(_RANGE,)
)
WRITE_FILE = _operation(
    "writeFile", "Upload a file", description=_WRITING, body=_BYTES, returns=results.FsWriteResult, errors=_WRITE_ERRORS
)
DELETE_ENTRY = _operation(
    "deleteEntry", "Delete a file, or a directory with `recursive`", query=DeleteQuery, returns=results.FsActionResult
)
MAKE_DIRECTORY = _operation(
    "makeDirectory",
    "Create a directory and its parents",
    returns=results.FsActionResult,
    errors=(*_ERRORS, UnsupportedMediaType, 507),
)
MOVE_ENTRY = _operation(
    "moveEntry",
    "Move or rename",
    query=SessionIdQuery,
    body=MoveBody,
    returns=results.FsMoveResult,
    errors=_MOVE_ERRORS,
)
STAT_ENTRY = _operation("statEntry", "Get type, size and modification time", returns=results.FsStat)
UPLOAD_BATCH = _operation(
    "uploadBatch",
    "Upload a tar archive and unpack it",
    description=_UNPACKING,
    body=_TAR,
    returns=results.FsUploadResult,
    errors=_UNPACK_ERRORS,
)


class FilesApi:
    def __init__(self, hub: Hub, files: FileService) -> None:
        self._hub = hub
        self._files = files

    async def entries(self, exchange: Exchange) -> list[results.FsEntry]:
        wanted = exchange.query(EntriesQuery)
        return await self._files.list_entries(wanted.path, base=await self._base(wanted.session_id))

    async def read(self, exchange: Exchange) -> None:
        wanted = exchange.query(PathQuery)
        base = await self._base(wanted.session_id)
        async with await self._files.open_for_read(wanted.path, base=base) as file:
            await send_file(exchange, file)

    async def write(self, exchange: Exchange) -> results.FsWriteResult:
        wanted = exchange.query(PathQuery)
        base = await self._base(wanted.session_id)
        return await self._files.write_stream(wanted.path, exchange.body(), base=base)

    async def delete(self, exchange: Exchange) -> results.FsActionResult:
        wanted = exchange.query(DeleteQuery)
        base = await self._base(wanted.session_id)
        return await self._files.delete(wanted.path, recursive=wanted.recursive, base=base)

    async def mkdir(self, exchange: Exchange) -> results.FsActionResult:
        exchange.refuse_forms()
        wanted = exchange.query(PathQuery)
        return await self._files.mkdir(wanted.path, base=await self._base(wanted.session_id))

    async def move(self, exchange: Exchange) -> results.FsMoveResult:
        query = exchange.query(SessionIdQuery)
        wanted = await exchange.json(MoveBody)
        base = await self._base(query.session_id)
        return await self._files.move(wanted.source, wanted.target, overwrite=wanted.overwrite, base=base)

    async def stat(self, exchange: Exchange) -> results.FsStat:
        wanted = exchange.query(PathQuery)
        return await self._files.stat(wanted.path, base=await self._base(wanted.session_id))

    async def upload_batch(self, exchange: Exchange) -> results.FsUploadResult:
        media = media_type(exchange.header(b"content-type"))
        if media not in _TAR_TYPES:
            raise UnsupportedMediaType(f"Content-Type must be application/x-tar or application/gzip, not {media!r}")
        wanted = exchange.query(PathQuery)
        base = await self._base(wanted.session_id)
        return await self._files.upload_batch(wanted.path, exchange.body(), base=base)

    async def _base(self, session_id: str | None) -> Path | None:
        if session_id is None:
            return None
        record = await self._hub.sessions.look_up(SessionName(session_id))
        return Path(record.cwd) if record.cwd else None
