"""What a reader of a stream gets: pages of entries, and notices in place of those that are gone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sandbox_agent.store.base import Entry, Source

LOST = "_sandboxagent/history/lost"


def lost_notice(first: int, last: int, reason: str) -> bytes:
    """The line that takes the place, at sequence `last`, of lines that could not be kept."""
    params = {"fromSequence": first, "toSequence": last, "reason": reason}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": LOST, "params": params})


class Page:
    """Gathers the entries of one read and knows when it is full."""

    def __init__(self, *, after: int, limit: int, max_bytes: int) -> None:
        self.entries: list[Entry] = []
        self.after = after
        self.is_full = limit <= 0
        self._room = limit
        self._bytes_left = max_bytes

    def add(self, first: int, time: float, source: Source, lines: Sequence[bytes]) -> None:
        """Take those of the lines that are later than all before, until the page is full."""
        if self.is_full:
            return
        start = max(0, self.after + 1 - first)
        for offset in range(start, len(lines)):
            envelope = lines[offset]
            self._bytes_left -= len(envelope)
            if self._room <= 0 or (self._bytes_left < 0 and self.entries):
                self.is_full = True
                return
            self.after = first + offset
            self.entries.append(Entry(self.after, time, source, envelope))
            self._room -= 1
        self.is_full = self._room <= 0 or self._bytes_left <= 0
