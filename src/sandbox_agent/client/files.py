"""Files where the server runs."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from sandbox_agent.client.api import Api

_PIECE = 1 << 20


class FileEntry(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    entry_type: Literal["file", "directory"]
    size: int
    modified: str | None = None
    name: str = ""

    @property
    def is_directory(self) -> bool:
        return self.entry_type == "directory"


class Files:
    """Relative paths start at the cwd of the session `session_id`, if one is given, else at the server's."""

    def __init__(self, api: Api, session_id: str | None = None) -> None:
        self._api = api
        self._session_id = session_id

    def within(self, session_id: str) -> Files:
        """The same, with relative paths from that session's cwd."""
        return Files(self._api, session_id)

    async def stat(self, path: str) -> FileEntry:
        return msgspec.convert(await self._api.get("/v1/fs/stat", **self._at(path)), FileEntry)

    async def read(self, path: str) -> bytes:
        return b"".join([piece async for piece in self.read_pieces(path)])

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return (await self.read(path)).decode(encoding)

    async def read_pieces(self, path: str) -> AsyncIterator[bytes]:
        """A file of any size, piece by piece."""
        async with self._api.stream("/v1/fs/file", query=self._at(path)) as response:
            async for piece in response.aiter_bytes(_PIECE):
                yield piece

    async def download(self, path: str, target: Path | str) -> int:
        """Into a local file, which is there whole or not at all. Gives its size."""
        target = Path(target)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        size = 0
        try:
            with partial.open("wb") as file:
                async for piece in self.read_pieces(path):
                    await asyncio.to_thread(file.write, piece)
                    size += len(piece)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return size

    async def write(self, path: str, content: bytes | str | Path | AsyncIterator[bytes]) -> int:
        """Replace a file by bytes, text, a local file or a stream of bytes. Gives its size."""
        match content:
            case str():
                sent: bytes | AsyncIterator[bytes] = bytes(content, "utf-8")
            case Path():
                sent = _pieces(content)
            case _:
                sent = content
        response = await self._api.request(
            "PUT",
            "/v1/fs/file",
            query=self._at(path),
            content=sent,
            headers={"Content-Type": "application/octet-stream"},
            timeout=600.0,
        )
        return int(msgspec.json.decode(response.content)["bytesWritten"])

    async def mkdir(self, path: str) -> None:
        await self._api.post("/v1/fs/mkdir", **self._at(path))

    async def move(self, source: str, target: str, *, overwrite: bool = False) -> None:
        body = {"from": source, "to": target, "overwrite": overwrite}
        await self._api.request("POST", "/v1/fs/move", query={"sessionId": self._session_id}, body=body)

    async def delete(self, path: str, *, recursive: bool = False) -> None:
        query = {**self._at(path), "recursive": recursive}
        await self._api.request("DELETE", "/v1/fs/entry", query=query)

    async def upload(self, directory: Path | str, path: str) -> list[str]:
        """Send a local directory as a tar, without holding it in memory. Gives the paths that were written."""
        response = await self._api.request(
            "POST",
            "/v1/fs/upload-batch",
            query=self._at(path),
            content=_tar_pieces(Path(directory)),
            headers={"Content-Type": "application/x-tar"},
            timeout=600.0,
        )
        written: list[str] = msgspec.json.decode(response.content)["paths"]
        return written

    async def list(self, path: str = ".") -> list[FileEntry]:
        return msgspec.convert(await self._api.get("/v1/fs/entries", **self._at(path)), list[FileEntry])

    def _at(self, path: str) -> dict[str, Any]:
        return {"path": path, "sessionId": self._session_id}


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece


async def _tar_pieces(directory: Path) -> AsyncIterator[bytes]:
    """A thread writes the archive into a pipe, at the pace at which it is read here."""
    import tarfile  # noqa: PLC0415 - brings three compressors along, and few programs upload a directory

    reading, writing = os.pipe()
    failures: list[Exception] = []

    def pack() -> None:
        try:
            with os.fdopen(writing, "wb") as sink, tarfile.open(fileobj=sink, mode="w|") as archive:
                for entry in sorted(directory.iterdir()):
                    archive.add(entry, arcname=entry.name)
        except BrokenPipeError:
            pass  # the reader has gone: it knows why
        except (OSError, tarfile.TarError) as error:
            failures.append(error)

    packer = threading.Thread(target=pack, daemon=True)
    packer.start()
    with os.fdopen(reading, "rb", buffering=0) as source:
        while piece := await asyncio.to_thread(source.read, _PIECE):
            yield piece
    await asyncio.to_thread(packer.join)
    if failures:
        raise failures[0]
