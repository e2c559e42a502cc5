"""The two pipes: stdin cut into lines while turns run, stdout written in batches with back pressure."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Callable

MAX_LINE = 64 * 1024 * 1024
_BATCH = 64 * 1024
_READ_SIZE = 256 * 1024


class LineSplitter:
    """Cuts bytes into lines. A line longer than `limit` is dropped and reported as None once."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        head, *rest = data.split(b"\n")
        lines: list[bytes | None] = []
        self._hold(head, lines)
        for piece in rest:
            if not self._skipping:
                lines.append(b"".join(self._parts))
            self._parts, self._held, self._skipping = [], 0, False
            self._hold(piece, lines)
        return lines

    def _hold(self, piece: bytes, lines: list[bytes | None]) -> None:
        if self._skipping or not piece:
            return
        self._parts.append(piece)
        self._held += len(piece)
        if self._held > self._limit:
            self._parts, self._skipping = [], True
            lines.append(None)


class Stdin(asyncio.Protocol):
    """Calls `on_line` for each line (None: too long), and `on_end` once, at the end of file."""

    def __init__(self, on_line: Callable[[bytes | None], None], on_end: Callable[[], None]) -> None:
        self._splitter = LineSplitter()
        self._on_line = on_line
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            if line is None or line.strip():
                self._on_line(line)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()

    async def open(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        if _can_poll(fd):
            await loop.connect_read_pipe(lambda: self, os.fdopen(fd, "rb", buffering=0, closefd=False))
        else:
            threading.Thread(target=self._read_file, args=(fd, loop), daemon=True).start()

    def _read_file(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        while data := os.read(fd, _READ_SIZE):
            loop.call_soon_threadsafe(self.data_received, data)
        loop.call_soon_threadsafe(self.connection_lost, None)


class Stdout(asyncio.BaseProtocol):
    """Collects lines and writes many at once. Whoever streams awaits `drain`, which bounds what is held."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.WriteTransport | None = None
        self._fd = -1
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._closed = asyncio.Event()

    async def open(self, fd: int) -> None:
        self._fd = fd
        if _can_poll(fd):
            pipe = os.fdopen(fd, "wb", buffering=0, closefd=False)
            self._transport, _ = await asyncio.get_running_loop().connect_write_pipe(lambda: self, pipe)

    def send(self, line: bytes) -> None:
        """Queue one line, given without its newline; it is written at the latest when the loop is idle."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self.flush)
        self._pending.append(line)
        self._pending_size += len(line) + 1
        if self._pending_size >= _BATCH:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        self._pending.append(b"")
        batch = b"\n".join(self._pending)
        self._pending, self._pending_size = [], 0
        if self._closed.is_set():
            return
        if self._transport is not None:
            self._transport.write(batch)
            return
        while batch:
            batch = batch[os.write(self._fd, batch) :]

    async def drain(self) -> None:
        """Wait until the reader has caught up; gives way to other work in any case."""
        await asyncio.sleep(0)
        await self._has_room.wait()

    async def close(self, *, grace: float) -> None:
        """Write what is left, for at most `grace` seconds."""
        self.flush()
        if self._transport is None:
            return
        self._transport.close()
        try:
            await asyncio.wait_for(self._closed.wait(), grace)
        except TimeoutError:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self._has_room.set()
        self._on_lost()


def _can_poll(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
