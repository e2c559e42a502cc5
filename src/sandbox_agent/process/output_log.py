"""What a program has printed, numbered 1, 2, 3, … without holes: the newest in memory, as much as is kept on disk.

The oldest goes when there is more than the limit; `first` says what is the oldest that is left. After a crash all that
was told of is still there: each entry is written before anybody can read it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import struct
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

_log = logging.getLogger(__name__)

Stream = Literal["stdout", "stderr", "pty"]
STREAMS: tuple[Stream, ...] = ("stdout", "stderr", "pty")
_HEAD = struct.Struct("<QQBI")
"""Sequence, milliseconds, stream, length."""
_IN_MEMORY = 1 << 18
_ENTRY = 1 << 16
"""Bytes of one entry: what came in one piece is cut in several when it is longer."""
_SHARE = 4
"""The log is dropped in parts of this fraction of its limit."""
PIECE = 1 << 18
"""Bytes that a reader gets at once, about."""


class Entry(NamedTuple):
    sequence: int
    stream: Stream
    at_ms: int
    content: bytes


class Piece(NamedTuple):
    """`cut` are the first and the last number that are gone before these entries."""

    entries: list[Entry]
    cut: tuple[int, int] | None = None


class _Segment(msgspec.Struct):
    first: int
    path: Path
    size: int = 0


class OutputLog:
    """`folder` is made and belongs to the log. A disk that takes nothing costs the older entries, never the program."""

    def __init__(self, folder: Path, *, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.last = 0
        self.bytes_written = 0
        self._segments: deque[_Segment] = deque()
        self._newest: deque[Entry] = deque()
        self._newest_bytes = 0
        self._fd: int | None = None
        self._is_on_disk = True
        self._is_ended = False
        self._waiting: set[asyncio.Future[None]] = set()

    @classmethod
    def restored(cls, folder: Path, *, limit: int) -> OutputLog:
        """What an earlier run has left, at rest. A torn end is passed over. Blocks: reads the end of the files."""
        log = cls(folder, limit=limit)
        log._is_ended = True
        for path in sorted(folder.glob("*.log")):
            log._segments.append(_Segment(int(path.stem), path, path.stat().st_size))
        while log._segments and not log.last:
            heads = [sequence for sequence, *_ in _heads(log._segments[-1].path)]
            if heads:
                log.last = heads[-1]
            else:
                log._segments.pop()
        log.bytes_written = log.bytes_kept
        return log

    @property
    def first(self) -> int:
        """The oldest entry that can be read; one more than `last` where there is none."""
        if self._segments:
            return self._segments[0].first
        return self._newest[0].sequence if self._newest else self.last + 1

    @property
    def bytes_kept(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def is_ended(self) -> bool:
        return self._is_ended

    def append(self, stream: Stream, content: bytes, at_ms: int) -> None:
        for start in range(0, len(content), _ENTRY):
            self.last += 1
            entry = Entry(self.last, stream, at_ms, content[start : start + _ENTRY])
            if self._is_on_disk:
                self._write(entry)
            self._newest.append(entry)
            self._newest_bytes += len(entry.content)
            while self._newest_bytes > min(_IN_MEMORY, self.limit) and len(self._newest) > 1:
                self._newest_bytes -= len(self._newest.popleft().content)
        self.bytes_written += len(content)
        self._wake()

    def end(self) -> None:
        """No more will come: whoever follows gets to the end, and memory is given back."""
        if not self._is_ended:
            self._is_ended = True
            self._close_file()
            if self._is_on_disk:
                self._newest.clear()
                self._newest_bytes = 0
            self._wake()

    def remove(self) -> None:
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._segments.clear()
        self._newest.clear()

    def read_from(self, after: int) -> LogReader:
        return LogReader(self, after)

    def late(self, most: int) -> int:
        """The number after which about the last `most` bytes begin, as far as memory or whole files tell."""
        size = 0
        if self._newest and self._newest_bytes >= min(most, _IN_MEMORY):
            for entry in reversed(self._newest):
                size += len(entry.content)
                if size >= most:
                    return entry.sequence
            return self._newest[0].sequence - 1
        for segment in reversed(self._segments):
            size += segment.size
            if size >= most:
                return segment.first - 1
        return self.first - 1

    def tail(self, after: int) -> Piece | None:
        """What follows `after`, if memory has it."""
        if self._newest and self._newest[0].sequence <= after + 1:
            return Piece(list(_until_full(entry for entry in self._newest if entry.sequence > after)))
        return Piece([]) if after >= self.last else None

    def segment_of(self, sequence: int) -> _Segment | None:
        found = None
        for segment in self._segments:
            if segment.first <= sequence:
                found = segment
        return found

    def would_lose(self, position: int) -> bool:
        """Whether much more output could cut what follows `position`."""
        if self.bytes_kept <= self.limit // 2:
            return False
        return len(self._segments) < 2 or position + 1 < self._segments[1].first

    def goes_on_after(self, segment: _Segment) -> int:
        """The number that follows what the segment holds, or held."""
        later = [other.first for other in self._segments if other.first > segment.first]
        if later:
            return later[0]
        return self._newest[0].sequence if self._newest else self.last + 1

    async def grown(self, after: int, *, wait: float) -> None:
        """Return when there is more than `after`, when no more will come, or when the time is up."""
        if self.last > after or self._is_ended:
            return
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        timer = loop.call_later(wait, _settle, waiting)
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            timer.cancel()
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            _settle(waiting)

    def _write(self, entry: Entry) -> None:
        try:
            if self._fd is None or self._segments[-1].size >= max(1, self.limit // _SHARE):
                self._begin_segment(entry.sequence)
            assert self._fd is not None  # noqa: S101 - a segment has begun
            head = _HEAD.pack(entry.sequence, entry.at_ms, STREAMS.index(entry.stream), len(entry.content))
            _write_all(self._fd, head, entry.content)
        except OSError as error:
            _log.warning("output is kept in memory only log=%s error=%s", self.folder, error.strerror)
            self._is_on_disk = False
            self._close_file()
            self._segments.clear()
            return
        self._segments[-1].size += len(entry.content)
        while len(self._segments) > 1 and self.bytes_kept > self.limit:
            self._segments.popleft().path.unlink(missing_ok=True)

    def _begin_segment(self, first: int) -> None:
        self._close_file()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{first:020}.log"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._segments.append(_Segment(first, path))

    def _close_file(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class LogReader:
    """One who reads a log in order, at their own pace. `position` is the last number that they got."""

    def __init__(self, log: OutputLog, after: int) -> None:
        self._log = log
        self.position = min(after, log.last)
        self._place: tuple[Path, int] | None = None
        """Where in which file the next entry begins, so that it need not be looked for."""
        self._unreadable: _Segment | None = None

    @property
    def is_over(self) -> bool:
        return self._log.is_ended and self.position >= self._log.last

    async def take(self, *, wait: float = 0.0) -> Piece:
        """What follows, waiting up to `wait` seconds for it. What was cut is told once."""
        if wait:
            await self._log.grown(self.position, wait=wait)
        cut = self._skip_to(self._log.first)
        piece = self._log.tail(self.position)
        while piece is None:
            piece = await self._from_disk()
            if piece is None:
                cut = _joined(cut, self._skip_to(self._goes_on()))
        if piece.entries:
            self.position = piece.entries[-1].sequence
        return Piece(piece.entries, cut)

    def _skip_to(self, first: int) -> tuple[int, int] | None:
        if self.position >= first - 1:
            return None
        cut = (self.position + 1, first - 1)
        self.position = first - 1
        return cut

    def _goes_on(self) -> int:
        """After a part that was cut in this moment, or that the disk does not give back."""
        if self._log.first > self.position + 1 or self._unreadable is None:
            return self._log.first
        return self._log.goes_on_after(self._unreadable)

    async def _from_disk(self) -> Piece | None:
        """None when it is not there."""
        segment = self._log.segment_of(self.position + 1)
        if segment is None:
            return Piece([])
        start = self._place[1] if self._place is not None and self._place[0] == segment.path else 0
        try:
            entries, self._place = await asyncio.to_thread(_read, segment.path, start, self.position)
        except OSError:
            entries = []
        if entries:
            return Piece(entries)
        self._unreadable = segment
        return None


def _read(path: Path, start: int, after: int) -> tuple[list[Entry], tuple[Path, int]]:
    found: list[Entry] = []
    size, place = 0, (path, start)
    for entry, end in _scan(path, start):
        place = (path, end)
        if entry.sequence > after:
            found.append(entry)
            size += len(entry.content)
            if size >= PIECE:
                break
    return found, place


def _scan(path: Path, start: int) -> Iterator[tuple[Entry, int]]:
    """The entries from the byte `start` on, each with where it ends."""
    with path.open("rb") as file:
        file.seek(start)
        at = start
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            sequence, at_ms, stream, length = _HEAD.unpack(head)
            if stream >= len(STREAMS) or length > _ENTRY or len(content := file.read(length)) < length:
                return
            at += _HEAD.size + length
            yield Entry(sequence, STREAMS[stream], at_ms, content), at


def _heads(path: Path) -> Iterator[tuple[int, int, int, int]]:
    """The heads of the entries that are whole, without reading what they hold."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            sequence, at_ms, stream, length = _HEAD.unpack(head)
            if stream >= len(STREAMS) or length > _ENTRY or file.tell() + length > size:
                return
            yield sequence, at_ms, stream, length
            file.seek(length, os.SEEK_CUR)


def _until_full(entries: Iterator[Entry]) -> Iterator[Entry]:
    size = 0
    for entry in entries:
        yield entry
        size += len(entry.content)
        if size >= PIECE:
            return


def _write_all(fd: int, head: bytes, content: bytes) -> None:
    written = os.writev(fd, (head, content))
    if written < len(head) + len(content):
        rest = (head + content)[written:]
        while rest:
            rest = rest[os.write(fd, rest) :]


def _joined(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    if one is None or other is None:
        return one or other
    return (one[0], other[1])


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
