"""Which files may be read or replaced (regular ones, on file systems that hold data), and one that is open."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

from sandbox_agent.archives.rules import MIB, clip
from sandbox_agent.errors import Conflict, Forbidden, InvalidParams
from sandbox_agent.files.results import modified
from sandbox_agent.files.walk import Spot

T = TypeVar("T")

# fmt: off
_PSEUDO = frozenset({
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs",
    "fusectl", "mqueue", "nsfs", "proc", "pstore", "securityfs", "selinuxfs", "sysfs", "tracefs",
})
# fmt: on
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


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
        self.read_at = time.monotonic()
        """When somebody last asked for a piece of it."""
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
        self.read_at = time.monotonic()
        if self.fd < 0:
            raise Conflict(f"{clip(self.path)} was read too slowly: its place was given to another")
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


def open_regular(spot: Spot, asked: str) -> tuple[int, os.stat_result]:
    """Open for reading. Looks before it opens, as opening a device or a FIFO has effects, and again after."""
    check_regular(spot.status(), asked)
    fd = os.open(spot.name, _READ, dir_fd=spot.fd)
    try:
        status = os.fstat(fd)
        check_regular(status, asked)
    except BaseException:
        os.close(fd)
        raise
    return fd, status


def check_regular(status: os.stat_result, asked: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise Conflict(f"{clip(asked)} is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise Forbidden(f"{clip(asked)} is not a regular file")
    check_device(status, asked)


def check_device(status: os.stat_result, asked: str) -> None:
    """Refuse what the kernel makes up, such as /proc: it has secrets, and files without an end."""
    kind = file_system(status.st_dev)
    if kind in _PSEUDO:
        raise Forbidden(f"{clip(asked)} is part of the kernel's {kind} file system, not a stored file")


@lru_cache(maxsize=256)
def file_system(device: int) -> str | None:
    """The type of the file system with this device number, where the system tells."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ", 3)
        if len(fields) > 2 and fields[2] == wanted:
            return after.split(" ", 1)[0]
    return None
