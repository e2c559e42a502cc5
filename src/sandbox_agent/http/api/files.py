"""`/v1/fs/*`: the file service over HTTP."""

from __future__ import annotations

from pathlib import Path

import msgspec

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
from sandbox_agent.files import (
    FileService,
    FsActionResult,
    FsEntry,
    FsMoveResult,
    FsStat,
    FsUploadResult,
    FsWriteResult,
)
from sandbox_agent.http.api.download import send_file
from sandbox_agent.http.asgi.exchange import Exchange, media_type
from sandbox_agent.http.asgi.routes import Content, Operation
from sandbox_agent.hub.hub import Hub
from sandbox_agent.hub.sessions.views import find_record


class PathQuery(msgspec.Struct, rename="camel"):
    """A relative path starts at the cwd of the session, if one is named, else at the server's."""

    path: str
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
_STAT = {"path": "/work/a.txt", "entryType": "file", "size": 5, "modified": "2026-01-31T12:00:00.000Z"}

LIST_ENTRIES = Operation(
    name="listEntries",
    summary="What is in a directory",
    tag="files",
    query=PathQuery,
    returns=list[FsEntry],
    errors=_ERRORS,
    example=[{"name": "a.txt", **_STAT}],
)
READ_FILE = Operation(
    name="readFile",
    summary="A file's bytes; one range may be asked for",
    tag="files",
    description="Streams. Answers `206` to `Range: bytes=…` with one range (with several: the whole file), "
    "honours `If-Range`, and answers `304` to `If-None-Match` with the current `ETag`.",
    query=PathQuery,
    returns=_BYTES,
    errors=(*_ERRORS, 206, 304, RangeNotSatisfiable),
    headers=(("Range", "One range of bytes, as `bytes=0-99`, `bytes=100-` or `bytes=-100`.", False),),
)
WRITE_FILE = Operation(
    name="writeFile",
    summary="Write a file, replacing the old one once all bytes have come",
    tag="files",
    description="Streams, any size. Missing directories are made. An upload that breaks off changes nothing.",
    query=PathQuery,
    body=_BYTES,
    returns=FsWriteResult,
    errors=(*_ERRORS, TooLarge, UploadStalled, 507),
    example={"path": "/work/a.txt", "bytesWritten": 5},
)
DELETE_ENTRY = Operation(
    name="deleteEntry",
    summary="Delete a file, or a directory with `recursive`",
    tag="files",
    query=DeleteQuery,
    returns=FsActionResult,
    errors=_ERRORS,
    example={"path": "/work/a.txt"},
)
MAKE_DIRECTORY = Operation(
    name="makeDirectory",
    summary="Make a directory and those above it",
    tag="files",
    query=PathQuery,
    returns=FsActionResult,
    errors=(*_ERRORS, UnsupportedMediaType, 507),
    example={"path": "/work/src"},
)
MOVE_ENTRY = Operation(
    name="moveEntry",
    summary="Move or rename",
    tag="files",
    query=SessionIdQuery,
    body=MoveBody,
    returns=FsMoveResult,
    errors=(*_ERRORS, UnsupportedMediaType, TooLarge, 507),
    example={"from": "/work/a.txt", "to": "/work/b.txt"},
    body_example={"from": "/work/a.txt", "to": "/work/b.txt", "overwrite": True},
)
STAT_ENTRY = Operation(
    name="statEntry",
    summary="Kind, size and time of a file or directory",
    tag="files",
    query=PathQuery,
    returns=FsStat,
    errors=_ERRORS,
    example=_STAT,
)
UPLOAD_BATCH = Operation(
    name="uploadBatch",
    summary="Unpack a tar, plain or gzip, into a directory",
    tag="files",
    description="All or nothing: an archive that is damaged, too large or hostile leaves nothing behind.",
    query=PathQuery,
    body=_TAR,
    returns=FsUploadResult,
    errors=(*_ERRORS, BadArchive, TooLarge, UnsupportedMediaType, UploadStalled, 507),
    example={"paths": ["/work/src/main.py"], "truncated": False},
)


class FilesApi:
    def __init__(self, hub: Hub, files: FileService) -> None:
        self._hub = hub
        self._files = files

    async def entries(self, exchange: Exchange) -> list[FsEntry]:
        wanted = exchange.query(PathQuery)
        return await self._files.list_entries(wanted.path, base=await self._base(wanted.session_id))

    async def read(self, exchange: Exchange) -> None:
        wanted = exchange.query(PathQuery)
        base = await self._base(wanted.session_id)
        async with await self._files.open_for_read(wanted.path, base=base) as file:
            await send_file(exchange, file)

    async def write(self, exchange: Exchange) -> FsWriteResult:
        wanted = exchange.query(PathQuery)
        base = await self._base(wanted.session_id)
        return await self._files.write_stream(wanted.path, exchange.body(), base=base)

    async def delete(self, exchange: Exchange) -> FsActionResult:
        wanted = exchange.query(DeleteQuery)
        base = await self._base(wanted.session_id)
        return await self._files.delete(wanted.path, recursive=wanted.recursive, base=base)

    async def mkdir(self, exchange: Exchange) -> FsActionResult:
        exchange.refuse_forms()
        wanted = exchange.query(PathQuery)
        return await self._files.mkdir(wanted.path, base=await self._base(wanted.session_id))

    async def move(self, exchange: Exchange) -> FsMoveResult:
        query = exchange.query(SessionIdQuery)
        wanted = await exchange.json(MoveBody)
        base = await self._base(query.session_id)
        return await self._files.move(wanted.source, wanted.target, overwrite=wanted.overwrite, base=base)

    async def stat(self, exchange: Exchange) -> FsStat:
        wanted = exchange.query(PathQuery)
        return await self._files.stat(wanted.path, base=await self._base(wanted.session_id))

    async def upload_batch(self, exchange: Exchange) -> FsUploadResult:
        media = media_type(exchange.header(b"content-type"))
        if media not in _TAR_TYPES:
            raise UnsupportedMediaType(f"Content-Type must be application/x-tar or application/gzip, not {media!r}")
        wanted = exchange.query(PathQuery)
        base = await self._base(wanted.session_id)
        return await self._files.upload_batch(wanted.path, exchange.body(), base=base)

    async def _base(self, session_id: str | None) -> Path | None:
        if session_id is None:
            return None
        record = await find_record(self._hub, session_id)
        return Path(record.cwd) if record.cwd else None
