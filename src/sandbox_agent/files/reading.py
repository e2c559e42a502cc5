"""A file that is open for reading."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Protocol, TypeVar

from sandbox_agent.archives.rules import MIB, clip
from sandbox_agent.errors import Conflict, InvalidParams
from sandbox_agent.files.results import modified

T = TypeVar("T")


class RunBlocking(Protocol):
    """Runs a function on a worker thread."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


class OpenFile:
    """One version of a file, held by its descriptor: replacing or deleting the path disturbs no reader.

    Whoever opened it closes it, or uses it in an `async with`. The fd belongs to this object: to hand it to
    `sendfile`, keep the object open until that is done.
    """

    def __init__(self, path: str, fd: int, status: os.stat_result, run: RunBlocking) -> None:
        self.path = path
        self.fd = fd
        self.size = status.st_size
        self.mtime = status.st_mtime
        self.modified = modified(status)
        self.etag = f'"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"'
        self.on_close: Callable[[], None] | None = None
        self._run = run

    @property
    def send_path(self) -> str:
        """A path for `http.response.pathsend` that names this very file, whatever `path` names by now."""
        if self.fd < 0:
            raise ValueError(f"{self.path} is closed")
        return f"/proc/self/fd/{self.fd}"

    async def chunks(self, offset: int = 0, length: int | None = None, *, chunk: int = MIB) -> AsyncIterator[bytes]:
        """Yield exactly `length` bytes from `offset` (to the end as it was at opening, if None).

        Raises Conflict when the file was cut shorter meanwhile: an answer with a length cannot be completed.
        """
        end = self.size if length is None else offset + length
        if offset < 0 or not offset <= end <= self.size:
            raise InvalidParams(f"bytes {offset} to {end} are not within the {self.size} bytes of {clip(self.path)}")
        while offset < end:
            piece = await self._read(offset, min(chunk, end - offset))
            if not piece:
                raise Conflict(f"{clip(self.path)} was cut shorter while it was read")
            offset += len(piece)
            yield piece

    async def _read(self, offset: int, count: int) -> bytes:
        """Read on a worker, with a descriptor of its own: `close` may come while the worker is at it."""
        fd = os.dup(self.fd)

        def read() -> bytes:
            try:
                return os.pread(fd, count, offset)
            finally:
                os.close(fd)

        return await self._run(read)

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
            if self.on_close is not None:
                self.on_close()

    async def __aenter__(self) -> OpenFile:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
