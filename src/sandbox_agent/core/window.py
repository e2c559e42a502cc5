"""The numbered events of one stream: the newest in memory, older ones as pointers into the store.

Every event is a line of some append-only record (a session's history, or the connection's own events), so that
an event whose bytes have left memory can be read back from there. Ids are 1, 2, 3, … without holes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from operator import attrgetter

import msgspec

from sandbox_agent.core.ids import StreamKey

DELETED = "deleted:"
"""Begins the name of a record that no store has."""


class Lines(msgspec.Struct, frozen=True):
    """Events `first` and following, from memory."""

    first: int
    lines: list[bytes]


class Stored(msgspec.Struct, frozen=True):
    """Events `first` and following: entries `sequence` and following of `stream` in the store."""

    first: int
    stream: StreamKey
    sequence: int
    count: int


class Gap(msgspec.Struct, frozen=True):
    """Events that can no longer be had."""

    first: int
    last: int


class _Run(msgspec.Struct):
    first: int
    stream: int
    sequence: int
    lines: list[bytes]
    size: int


_first_id = attrgetter("first")


class Window:
    """Append at the end, read from anywhere that is still kept."""

    def __init__(self, *, memory_limit: int, run_limit: int) -> None:
        self._memory_limit = memory_limit
        self._run_limit = run_limit
        self._streams: list[StreamKey] = []
        self._stream_numbers: dict[StreamKey, int] = {}
        self._recent: list[_Run] = []
        self._size = 0
        self.last_id = 0
        """The id of the newest event, 0 before the first."""
        # Runs whose bytes have left memory: first event id, stream number, first sequence.
        self._old_ids = array("Q")
        self._old_streams = array("L")
        self._old_sequences = array("Q")

    @property
    def streams(self) -> list[StreamKey]:
        """The records that its events have come from."""
        return list(self._streams)

    @property
    def memory(self) -> int:
        """Bytes of events held."""
        return self._size

    @property
    def oldest_id(self) -> int:
        """The id of the oldest event that can still be read."""
        if self._old_ids:
            return self._old_ids[0]
        return self._recent[0].first if self._recent else self.last_id + 1

    def append(self, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        """Number `lines`, which are entries `sequence` and following of `stream`."""
        number = self._stream_numbers.get(stream)
        if number is None:
            number = self._stream_numbers[stream] = len(self._streams)
            self._streams.append(stream)
        size = sum(map(len, lines))
        last = self._recent[-1] if self._recent else None
        if (
            last is not None
            and last.stream == number
            and last.sequence + len(last.lines) == sequence
            and last.size < self._memory_limit >> 4
        ):
            last.lines += lines
            last.size += size
        else:
            self._recent.append(_Run(self.last_id + 1, number, sequence, list(lines), size))
        self.last_id += len(lines)
        self._size += size
        if self._size > self._memory_limit and len(self._recent) > 1:
            self._evict()

    def forget(self, stream: StreamKey) -> None:
        """A record is deleted: its events that have left memory are gone, also if a record of its name begins anew."""
        number = self._stream_numbers.pop(stream, None)
        if number is not None:
            self._streams[number] = StreamKey(f"{DELETED}{stream}")

    def read(self, after: int, *, max_bytes: int = 1 << 18) -> Lines | Stored | Gap | None:
        """What follows event `after`, as one piece; None when there is nothing yet. `after` ≤ last_id."""
        wanted = after + 1
        if after >= self.last_id:
            return None
        if wanted < self.oldest_id:
            return Gap(wanted, self.oldest_id - 1)
        if self._recent and wanted >= self._recent[0].first:
            return Lines(wanted, self._collect(wanted, max_bytes))
        return self._locate(wanted)

    def _collect(self, wanted: int, max_bytes: int) -> list[bytes]:
        lines: list[bytes] = []
        size = 0
        for at in range(bisect_right(self._recent, wanted, key=_first_id) - 1, len(self._recent)):
            run = self._recent[at]
            skip = wanted - run.first
            whole = run.lines if skip <= 0 else run.lines[skip:]
            if size + run.size <= max_bytes:
                lines += whole
                size += run.size
                continue
            for line in whole:
                if lines and size + len(line) > max_bytes:
                    return lines
                lines.append(line)
                size += len(line)
            if size >= max_bytes:
                break
        return lines

    def _locate(self, wanted: int) -> Stored:
        at = bisect_right(self._old_ids, wanted) - 1
        first = self._old_ids[at]
        end = self._old_ids[at + 1] if at + 1 < len(self._old_ids) else self._recent[0].first
        skip = wanted - first
        return Stored(
            wanted,
            self._streams[self._old_streams[at]],
            self._old_sequences[at] + skip,
            end - wanted,
        )

    def _evict(self) -> None:
        """Down to three quarters of the limit, so that it happens seldom."""
        keep = self._memory_limit * 3 // 4
        count = 0
        while self._size > keep and count < len(self._recent) - 1:
            self._forget_bytes(self._recent[count])
            count += 1
        del self._recent[:count]

    def _forget_bytes(self, run: _Run) -> None:
        self._size -= run.size
        follows = (
            self._old_ids
            and self._old_streams[-1] == run.stream
            and self._old_sequences[-1] + (run.first - self._old_ids[-1]) == run.sequence
        )
        if follows:
            return  # the pointer before it covers this run too
        self._old_ids.append(run.first)
        self._old_streams.append(run.stream)
        self._old_sequences.append(run.sequence)
        if len(self._old_ids) > self._run_limit:
            drop = self._run_limit // 4
            del self._old_ids[:drop], self._old_streams[:drop], self._old_sequences[:drop]
