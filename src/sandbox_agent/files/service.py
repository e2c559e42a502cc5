"""The file service: every operation, asynchronous, with the blocking work on threads of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

from sandbox_agent.archives.rules import KIB, ArchiveLimits, clip
from sandbox_agent.errors import ShuttingDown, TooLarge, TooMany, UploadStalled
from sandbox_agent.files import operations
from sandbox_agent.files.journal import UploadJournal
from sandbox_agent.files.paths import Roots, Standing, absolute, split
from sandbox_agent.files.reading import OpenFile
from sandbox_agent.files.results import FsActionResult, FsEntry, FsMoveResult, FsStat, FsUploadResult, FsWriteResult
from sandbox_agent.files.upload import PendingTree
from sandbox_agent.files.writing import PendingFile

T = TypeVar("T")
P = TypeVar("P", bound="_Pending")

_GATHER_BYTES = 256 * KIB
_GATHER_PIECES = 512
_HAS_PROC = Path("/proc/self/fd").exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits(ArchiveLimits):
    """Bounds of the file service."""

    max_file_bytes: int | None
    """A written file; None: as much as the disk holds."""
    max_inline_bytes: int
    """A file that passes through memory as one value (`read_bytes`, `write_bytes`)."""
    max_listed: int
    stall_seconds: float
    """How long an upload may send nothing; a download that nobody reads for so long gives way to others."""
    max_operations: int
    max_streams: int
    """Downloads at once, and uploads at once: each is counted apart, and apart from short operations."""
    workers: int


class Directory:
    """An open directory: `path` is what it is called, `handle` what a program that we start can be given as its cwd."""

    def __init__(self, fd: int | None, path: str) -> None:
        self.path = path
        self._fd = fd

    @property
    def fd(self) -> int:
        if self._fd is None:
            raise ValueError(f"{self.path} is not open")
        return self._fd

    @property
    def handle(self) -> str | None:
        """None is our own, in which a program starts anyway."""
        if self._fd is None:
            return None if self.path == os.getcwd() else self.path  # noqa: PTH109 - compared as text
        return f"/proc/self/fd/{self._fd}" if _HAS_PROC else self.path

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._fd is not None:
            os.close(self._fd)


class _Pending(Protocol):
    def abort(self) -> None: ...


class FileService:
    """Files beneath `roots`, or anywhere when there are none. Relative paths start at `base`, else at `cwd`.

    What waits for the disk runs on worker threads. With `data_dir` uploads are noted there, for `mend`. Call `close`
    when no operation is under way any more.
    """

    def __init__(self, roots: Sequence[Path], cwd: Path, limits: FileLimits, *, data_dir: Path | None) -> None:
        self._roots = Roots([(root.absolute(), root.resolve()) for root in roots])
        self._cwd = self._start(cwd.absolute())
        self.limits = limits
        self._pool = ThreadPoolExecutor(self.limits.workers, thread_name_prefix="files")
        self._is_closed = False
        self._journal = UploadJournal(data_dir)
        self._operations = _Gate(self.limits.max_operations, "file operations")
        self._uploads = _Gate(self.limits.max_streams, "uploads")
        self._downloads = _Gate(self.limits.max_streams, "downloads")
        self._open: set[OpenFile] = set()

    @property
    def cwd(self) -> Path:
        """Where relative paths start."""
        return self._cwd

    async def mend(self) -> None:
        """Remove or finish what the uploads of a server that was killed have left under the same `data_dir`."""
        await self._run(partial(self._journal.mend, self._roots))

    async def stat(self, path: str, *, base: Path | None = None) -> FsStat:
        return await self._operate(operations.stat_path, path, base)

    async def list_entries(self, path: str, *, base: Path | None = None) -> list[FsEntry]:
        return await self._operate(partial(operations.list_entries, limit=self.limits.max_listed), path, base)

    async def mkdir(self, path: str, *, base: Path | None = None) -> FsActionResult:
        await self._operate(operations.make_directory, path, base)
        return FsActionResult(path=self._absolute(path, base))

    async def delete(self, path: str, *, recursive: bool = False, base: Path | None = None) -> FsActionResult:
        await self._operate(partial(operations.delete_entry, recursive=recursive), path, base)
        return FsActionResult(path=self._absolute(path, base))

    async def move(
        self, source: str, target: str, *, overwrite: bool = False, base: Path | None = None
    ) -> FsMoveResult:
        old, new = self._absolute(source, base), self._absolute(target, base)
        with self._operations.enter():
            await self._run(partial(operations.move, self._roots, old, new, overwrite=overwrite))
        return FsMoveResult(from_=old, to=new)

    async def open_directory(self, path: str | None, *, base: Path | None = None) -> Directory:
        """A directory to run a program in; the caller closes it. Nobody can exchange it for another meanwhile.

        None is where relative paths start or, if that is out of the roots, the first of these."""
        if path is None and base is None and self._roots.root_of(self._roots.canonical(split(str(self._cwd)))) is None:
            path = self._roots.first
        where = self._absolute(path or ".", base)
        if path is None and base is None and not self._roots.is_confining:
            return Directory(None, where)  # our own: there is nothing to look up
        with self._operations.enter():
            fd, real = await self._run(partial(operations.open_directory, self._roots, where), discard=_close_directory)
        return Directory(fd, real)

    async def open_for_read(self, path: str, *, base: Path | None = None) -> OpenFile:
        """Open a regular file. The caller closes it: `async with await files.open_for_read(path) as file`."""
        where = self._absolute(path, base)
        self._close_unread()
        self._downloads.take()
        try:
            file = await self._open_file(where)
        except BaseException:
            self._downloads.give()
            raise

        def closed() -> None:
            self._open.discard(file)
            self._downloads.give()

        file.on_close = closed
        self._open.add(file)
        return file

    async def read_bytes(self, path: str, *, base: Path | None = None, limit: int | None = None) -> bytes:
        """A whole file as one value. Raises TooLarge beyond `limit`, else `limits.max_inline_bytes`."""
        where = self._absolute(path, base)
        with self._operations.enter():
            async with await self._open_file(where) as file:
                self._check_inline(file.path, file.size, limit)
                return b"".join([chunk async for chunk in file.chunks()])

    async def write_bytes(
        self, path: str, content: bytes, *, base: Path | None = None, limit: int | None = None
    ) -> FsWriteResult:
        """Replace a file by `content`. Raises TooLarge as `read_bytes` does."""
        self._check_inline(path, len(content), limit)
        with self._operations.enter():
            return await self._write(self._absolute(path, base), _once(content))

    async def write_stream(self, path: str, body: AsyncIterator[bytes], *, base: Path | None = None) -> FsWriteResult:
        """Receive a file of any size. It replaces the old one when complete; otherwise nothing changes."""
        where = self._absolute(path, base)
        with self._uploads.enter():
            return await self._write(where, body)

    async def upload_batch(
        self, path: str, body: AsyncIterator[bytes], *, is_gzip: bool | None = None, base: Path | None = None
    ) -> FsUploadResult:
        """Unpack a tar, compressed or not (None: look at it), into `path`. A bad archive changes nothing."""
        where = self._absolute(path, base)
        begin = partial(PendingTree, self._roots, where, self.limits, self._journal, is_gzip=is_gzip)
        with self._uploads.enter():
            _, (paths, truncated) = await self._receive(begin, PendingTree.feed, PendingTree.commit, body, where)
        return FsUploadResult(paths=paths, truncated=truncated)

    async def close(self) -> None:
        """Wait for what the workers are doing, and let them go. Later operations raise ShuttingDown."""
        self._is_closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)
        self._journal.close()

    async def _open_file(self, where: str) -> OpenFile:
        def opening() -> OpenFile:
            fd, status = operations.open_file(self._roots, where)
            return OpenFile(where, fd, status, self._run)

        return await self._run(opening, discard=OpenFile.close)

    def _close_unread(self) -> None:
        """With no place left, the downloads that nobody reads lose theirs."""
        if self._downloads.is_full:
            overdue = time.monotonic() - self.limits.stall_seconds
            for file in [file for file in self._open if file.read_at <= overdue]:
                file.close()

    async def _write(self, where: str, body: AsyncIterator[bytes]) -> FsWriteResult:
        begin = partial(PendingFile, self._roots, where, self.limits.max_file_bytes, self._journal)
        file, _ = await self._receive(begin, PendingFile.write, PendingFile.commit, body, where)
        return FsWriteResult(path=where, bytes_written=file.bytes_written)

    async def _receive(
        self,
        begin: Callable[[], P],
        write: Callable[[P, list[bytes]], None],
        commit: Callable[[P], T],
        body: AsyncIterator[bytes],
        path: str,
    ) -> tuple[P, T]:
        pending = await self._run(begin, discard=lambda unwanted: unwanted.abort())
        try:
            async for pieces in self._gathered(body, path):
                await self._run(partial(write, pending, pieces))
            return pending, await self._run(partial(commit, pending))
        except BaseException:
            # not on our own workers: a service that is closing must still clean up
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, pending.abort))
            raise

    async def _gathered(self, body: AsyncIterator[bytes], path: str) -> AsyncIterator[list[bytes]]:
        """Collect what arrives into larger writes, as a change of threads costs more than a small write."""
        pieces: list[bytes] = []
        size = 0
        while True:
            try:
                async with asyncio.timeout(self.limits.stall_seconds):
                    piece = await anext(body, None)
            except TimeoutError:
                raise UploadStalled(f"nothing came for {clip(path)} in {self.limits.stall_seconds:g} seconds") from None
            if piece is None:
                break
            pieces.append(piece)
            size += len(piece)
            if size >= _GATHER_BYTES or len(pieces) >= _GATHER_PIECES:
                yield pieces
                pieces, size = [], 0
        if pieces:
            yield pieces

    def _check_inline(self, path: str, size: int, limit: int | None) -> None:
        limit = self.limits.max_inline_bytes if limit is None else limit
        if size > limit:
            raise TooLarge(f"{clip(path)}: {size} bytes do not fit one message of {limit}", limit=limit)

    def _absolute(self, path: str, base: Path | None) -> str:
        return absolute(path, self._cwd if base is None else self._start(base))

    def _start(self, base: Path) -> Path:
        """Where relative paths start. A way into the roots through a link above them counts."""
        if self._roots.standing(self._roots.canonical(split(str(base)))) is Standing.OUTSIDE:
            return Path(os.path.realpath(base))
        return base

    async def _operate(self, operation: Callable[[Roots, str], T], path: str, base: Path | None) -> T:
        where = self._absolute(path, base)
        with self._operations.enter():
            return await self._run(partial(operation, self._roots, where))

    async def _run(self, work: Callable[[], T], *, discard: Callable[[T], None] | None = None) -> T:
        """Run `work` on a worker. When the caller is cancelled meanwhile, `discard` gets what it made."""
        if self._is_closed:
            raise ShuttingDown("the file service is closed")
        future = self._pool.submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if discard is not None:
                future.add_done_callback(partial(_pass_on, discard))
            raise


class _Gate:
    """Counts what is under way, and refuses more than the limit at once."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= self._limit

    def take(self) -> None:
        if self.is_full:
            raise TooMany(f"{self._limit} {self._what} are under way already", limit=self._limit)
        self._count += 1

    def give(self) -> None:
        self._count -= 1

    @contextmanager
    def enter(self) -> Iterator[None]:
        self.take()
        try:
            yield
        finally:
            self.give()


def _pass_on(take: Callable[[T], None], done: Future[T]) -> None:
    if not done.cancelled() and done.exception() is None:
        take(done.result())


def _close_directory(opened: tuple[int, str]) -> None:
    os.close(opened[0])


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
