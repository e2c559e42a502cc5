"""One page of the old universal events, as a poll asks for it."""

from __future__ import annotations

from sandbox_agent.history.entries import HistoryEntry
from sandbox_agent.history.universal.conversion import LegacyEvents
from sandbox_agent.history.universal.events import UniversalEvent


class EventPage:
    """One poll: the events with a sequence greater than `after`, oldest first, at most `limit` of them.

    Events follow from all that came before, so a fresh converter must be fed from the oldest entry on,
    whatever `after` is. `after` need not be an existing sequence; beyond the end gives an empty page."""

    def __init__(self, converter: LegacyEvents, *, after: int = 0, limit: int) -> None:
        self._converter = converter
        self._after = after
        self._limit = limit
        self.events: list[UniversalEvent] = []
        self.has_more = False

    def feed(self, entry: HistoryEntry) -> bool:
        """Take one entry; False once the page is full and known to have a successor: no need to read on."""
        fresh = self._converter.feed(entry, after=self._after)
        room = self._limit - len(self.events)
        self.events += fresh[:room]
        self.has_more = self.has_more or len(fresh) > room
        return not self.has_more
