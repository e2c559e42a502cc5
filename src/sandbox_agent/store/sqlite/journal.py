"""An append-only journal in two alternating files: what is written here survives the death of the process.

A record is `[u32 length][u32 crc32][payload]`, little-endian. Nothing is synced: the page cache outlives us.
A file is emptied once the database has taken in all of it.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from sandbox_agent.store.sqlite.operations import Operation, decode_operation

SEGMENT_BYTES = 16 * 1024 * 1024
MAX_BYTES = 8 * SEGMENT_BYTES
"""While the database cannot be written to, the journal grows to this and no further."""

_PLAUSIBLE_BYTES = 256 * 1024 * 1024
_HEADER = struct.Struct("<II")
_log = logging.getLogger("sandbox_agent.store")


class Journal:
    """Written by the loop's thread, emptied by the writer's; the lock between them is held briefly."""

    def __init__(self, path: Path) -> None:
        """`path` is the database's; the journal lies beside it."""
        self.paths = [path.with_name(f"{path.name}.journal.{index}") for index in (0, 1)]
        self._lock = threading.Lock()
        self._files: list[_Segment] = []
        self._current = 0

    def open(self) -> None:
        """Start empty: whatever was to be replayed has been."""
        self._files = [_Segment(path) for path in self.paths]
        self._current = 0

    def close(self) -> None:
        for segment in self._files:
            segment.close()
        self._files = []

    def write(self, newest: int, payloads: Iterable[bytes]) -> None:
        """Write records in one go, `newest` being the number of the last one.

        Raise OSError when they could not be written whole; then nothing of them stays."""
        with self._lock:
            current, other = self._files[self._current], self._files[1 - self._current]
            if current.size > SEGMENT_BYTES and other.size == 0:
                self._current = 1 - self._current
                current = other
            elif current.size + other.size > MAX_BYTES:
                raise OSError(errno.EFBIG, f"the journal has grown to {MAX_BYTES} bytes: the database takes nothing in")
            current.write(newest, payloads)

    def release(self, applied: int) -> None:
        """Empty what holds nothing newer than `applied`."""
        with self._lock:
            current = self._files[self._current]
            if current.size and current.newest <= applied and self._files[1 - self._current].size == 0:
                self._current = 1 - self._current
            idle = self._files[1 - self._current]
        if idle.size and idle.newest <= applied:
            idle.clear()

    def probe(self) -> None:
        """Raise OSError when a record of an ordinary size could not be written now."""
        with self._lock:
            self._files[self._current].probe()


def replay(journal: Journal, *, after: int) -> Iterator[Operation]:
    """Operations later than `after`, in order, from a journal that is not open."""
    found = [list(_read_segment(path)) for path in journal.paths]
    found.sort(key=lambda operations: operations[0].number if operations else 0)
    for operations in found:
        for operation in operations:
            if operation.number > after:
                after = operation.number
                yield operation


class _Segment:
    def __init__(self, path: Path) -> None:
        self.newest = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._fd, 0)
        self.size = 0

    def close(self) -> None:
        os.close(self._fd)

    def write(self, newest: int, payloads: Iterable[bytes]) -> None:
        parts: list[bytes] = []
        for payload in payloads:
            parts += (_HEADER.pack(len(payload), zlib.crc32(payload)), payload)
        records = b"".join(parts)
        try:
            written = os.write(self._fd, records)
            if written != len(records):
                self._write_rest(records[written:])
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise
        self.size += len(records)
        self.newest = newest

    def probe(self) -> None:
        newest, size = self.newest, self.size
        self.write(newest, [bytes(4096)])
        self.size = size
        os.ftruncate(self._fd, size)

    def clear(self) -> None:
        os.ftruncate(self._fd, 0)
        self.size = 0

    def _write_rest(self, rest: bytes) -> None:
        """A short write says that the room is gone, but not why; the next one raises the reason."""
        while rest:
            rest = rest[os.write(self._fd, rest) :]


def _read_segment(path: Path) -> Iterator[Operation]:
    try:
        content = memoryview(path.read_bytes())
    except FileNotFoundError:
        return
    offset = 0
    while len(content) - offset >= _HEADER.size:
        length, checksum = _HEADER.unpack_from(content, offset)
        payload = content[offset + _HEADER.size : offset + _HEADER.size + length]
        if len(payload) < length <= _PLAUSIBLE_BYTES:
            return  # the write that death cut short: nobody was told that it had succeeded
        try:
            operation = _decode(payload, checksum)
        except msgspec.DecodeError as error:
            _set_aside(path, content[offset:], error)
            return
        yield operation
        offset += _HEADER.size + length


def _decode(payload: memoryview, checksum: int) -> Operation:
    if not payload or zlib.crc32(payload) != checksum:
        raise msgspec.DecodeError("wrong checksum")
    operation: Operation = decode_operation(payload)
    return operation


def _set_aside(path: Path, rest: memoryview, error: Exception) -> None:
    kept = _free_name(path)
    kept.write_bytes(rest)
    _log.warning(
        "journal %s is damaged (%s): what comes before is replayed, the other %d bytes are kept in %s",
        path, error, len(rest), kept,
    )  # fmt: skip


def _free_name(path: Path) -> Path:
    for number in itertools.count(1):
        kept = path.with_name(f"{path.name}.damaged.{number}")
        if not kept.exists():
            return kept
    raise AssertionError("count ends")
