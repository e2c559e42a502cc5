"""An append-only journal in two alternating files: what is written here survives the death of the process.

A record is `["SaJ2"][u32 length][u32 the same, inverted][u32 crc32][payload]`, little-endian. So a damaged length is
told from a write that death cut short, and the next whole record is found behind any damage. Nothing is synced: the
page cache outlives us. A file is emptied once the database has taken in all of it.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from sandbox_agent.store.operations import Operation, decode_operation
from sandbox_agent.store.sqlite.disk import Disk

SEGMENT_BYTES = 16 * 1024 * 1024
MAX_BYTES = 8 * SEGMENT_BYTES
"""While the database cannot be written to, the journal grows to this and no further."""

_MAGIC = b"SaJ2"
_HEADER = struct.Struct("<4sIII")
_INVERTED = 0xFFFFFFFF
_BLANK = bytes(4096)
"""Written to see whether anything can be."""
_OLD_HEADER = struct.Struct("<II")
_OLD_PLAUSIBLE_BYTES = 256 * 1024 * 1024


class Journaled(NamedTuple):
    """What a journal holds: whole operations in order of their numbers, and which of its files are damaged, and how."""

    operations: list[Operation]
    damage: dict[Path, str]


class Journal:
    """Written by the loop's thread, emptied by the writer's; `lock` is between them, and held briefly."""

    def __init__(self, path: Path, *, disk: Disk) -> None:
        """`path` is the database's; the journal lies beside it."""
        self._disk = disk
        self.paths = journal_paths(path)
        self.lock = threading.Lock()
        self._files: list[_Segment] = []
        self._current = 0
        self.newest = 0
        """The number of the last operation that was written."""

    def open(self) -> None:
        """Start empty: whatever was to be replayed has been."""
        self._files = [_Segment(path, self._disk) for path in self.paths]
        self._current = 0

    def close(self) -> None:
        for segment in self._files:
            segment.close()
        self._files = []

    def write(self, newest: int, payloads: Iterable[bytes]) -> None:
        """Write records in one go, `newest` being the number of the last one. For a holder of the lock.

        Raise OSError when they could not be written whole; then nothing of them stays."""
        current, other = self._files[self._current], self._files[1 - self._current]
        if current.size > SEGMENT_BYTES and other.size == 0:
            self._current = 1 - self._current
            current = other
        elif current.size + other.size > MAX_BYTES:
            raise _too_large()
        current.write(newest, payloads)
        self.newest = newest

    def release(self, applied: int) -> None:
        """Empty what holds nothing newer than `applied`."""
        with self.lock:
            current = self._files[self._current]
            if current.size and current.newest <= applied and self._files[1 - self._current].size == 0:
                self._current = 1 - self._current
            idle = self._files[1 - self._current]
        if idle.size and idle.newest <= applied:
            idle.clear()

    def probe(self) -> None:
        """Raise OSError when a record of an ordinary size could not be written now. For a holder of the lock."""
        if sum(segment.size for segment in self._files) > MAX_BYTES:
            raise _too_large()
        self._files[self._current].probe()


def journal_paths(database: Path) -> list[Path]:
    return [database.with_name(f"{database.name}.journal.{index}") for index in (0, 1)]


def read_journal(paths: Iterable[Path]) -> Journaled:
    """Everything that can be read. A last record that death cut short is no damage: nobody was told of it."""
    found: dict[int, Operation] = {}
    damage: dict[Path, str] = {}
    for path in paths:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        operations, problem = _read(content)
        found.update((operation.number, operation) for operation in operations)
        if problem is not None:
            damage[path] = problem
    return Journaled([found[number] for number in sorted(found)], damage)


class _Segment:
    def __init__(self, path: Path, disk: Disk) -> None:
        self.newest = 0
        self._disk = disk
        self._fd = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        disk.truncate(self._fd, 0)
        self.size = 0

    def close(self) -> None:
        os.close(self._fd)

    def write(self, newest: int, payloads: Iterable[bytes]) -> None:
        parts: list[bytes] = []
        for payload in payloads:
            size = len(payload)
            parts += (_HEADER.pack(_MAGIC, size, size ^ _INVERTED, zlib.crc32(payload)), payload)
        records = b"".join(parts)
        try:
            written = self._disk.write(self._fd, records)
            if written != len(records):
                self._write_rest(records[written:])
        except OSError:
            self._cut_back()
            raise
        self.size += len(records)
        self.newest = newest

    def probe(self) -> None:
        size = self.size
        self.write(self.newest, [_BLANK])
        self._disk.truncate(self._fd, size)
        self.size = size  # and not before: until it is gone, what follows stands behind it

    def clear(self) -> None:
        self._disk.truncate(self._fd, 0)
        self.size = 0

    def _cut_back(self) -> None:
        try:
            self._disk.truncate(self._fd, self.size)
        except OSError:
            self.size = os.fstat(self._fd).st_size  # a fragment stays: readers pass over it

    def _write_rest(self, rest: bytes) -> None:
        """A short write says that the room is gone, but not why; the next one raises the reason."""
        while rest:
            rest = rest[self._disk.write(self._fd, rest) :]


def _too_large() -> OSError:
    return OSError(errno.EFBIG, f"the journal has grown to {MAX_BYTES} bytes: the database takes nothing in")


def _read(content: bytes) -> tuple[list[Operation], str | None]:
    """The whole records of a file, and what is wrong with the rest."""
    if content and not content.startswith(_MAGIC) and _next_record(content, 0) is None:
        return _read_old(content)
    operations: list[Operation] = []
    damaged = 0
    offset = 0
    while offset < len(content):
        found = _record_at(content, offset)
        if found is not None:
            operation, offset = found
            if operation is not None:
                operations.append(operation)
            continue
        following = _next_record(content, offset + 1)
        if following is None and _is_cut_short(content, offset):
            break
        end = len(content) if following is None else following
        damaged += end - offset
        offset = end
    return operations, f"{damaged} bytes are not whole records" if damaged else None


def _record_at(content: bytes, offset: int) -> tuple[Operation | None, int] | None:
    """What is in the whole record that begins here, if one does, and where it ends. A blank one holds nothing."""
    if len(content) - offset < _HEADER.size:
        return None
    magic, length, inverted, checksum = _HEADER.unpack_from(content, offset)
    start = offset + _HEADER.size
    if magic != _MAGIC or length ^ inverted != _INVERTED or start + length > len(content):
        return None
    payload = memoryview(content)[start : start + length]
    if zlib.crc32(payload) != checksum:
        return None
    if payload == _BLANK:
        return None, start + length
    try:
        return decode_operation(payload), start + length
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _next_record(content: bytes, offset: int) -> int | None:
    while (offset := content.find(_MAGIC, offset)) >= 0:
        if _record_at(content, offset) is not None:
            return offset
        offset += 1
    return None


def _is_cut_short(content: bytes, offset: int) -> bool:
    """Whether a record begins here whose end was never written."""
    head = content[offset : offset + _HEADER.size]
    if len(head) < _HEADER.size:
        return head.startswith(_MAGIC) or _MAGIC.startswith(head)
    magic, length, inverted, _ = _HEADER.unpack(head)
    if magic != _MAGIC or length ^ inverted != _INVERTED:
        return False
    return bool(offset + _HEADER.size + length > len(content))


def _read_old(content: bytes) -> tuple[list[Operation], str | None]:
    """`[u32 length][u32 crc32][payload]`, as servers wrote it before version 2 of the schema."""
    operations: list[Operation] = []
    offset = 0
    while len(content) - offset >= _OLD_HEADER.size:
        length, checksum = _OLD_HEADER.unpack_from(content, offset)
        payload = content[offset + _OLD_HEADER.size : offset + _OLD_HEADER.size + length]
        if len(payload) < length <= _OLD_PLAUSIBLE_BYTES:
            break  # the write that death cut short
        try:
            if not payload or zlib.crc32(payload) != checksum:
                raise msgspec.DecodeError("wrong checksum")
            operations.append(decode_operation(payload))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return operations, f"{len(content) - offset} bytes cannot be read: {error}"
        offset += _OLD_HEADER.size + length
    return operations, None
