"""The old universal event, how it is numbered, and how a poll pages through it.

`sequence` is 1000 x the history entry's sequence + the position among that entry's events, from 1: 42003 is
the third event of entry 42. It grows strictly, has holes, depends on history alone, and does not move when
retention drops the beginning of a history. `event_id` is `evt_` and that number, unless the envelope brought
an id along.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from sandbox_agent.core.history import HistoryEntry

EVENTS_PER_ENTRY = 1000

EventSource = Literal["agent", "daemon"]


class UniversalEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`daemon` is whoever is not the agent; `synthetic` means that no envelope says it outright."""

    event_id: str
    sequence: int
    time: str
    session_id: str
    native_session_id: str | None
    source: EventSource
    synthetic: bool
    type: str
    data: dict[str, Any]
    raw: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Converter(Protocol):
    def feed(self, entry: HistoryEntry) -> list[UniversalEvent]: ...


class EventPage:
    """One poll: the events with a sequence greater than `after`, oldest first, at most `limit` of them.

    Events follow from all that came before, so a fresh converter must be fed from the oldest entry on,
    whatever `after` is. `after` need not be an existing sequence; beyond the end gives an empty page."""

    def __init__(self, converter: Converter, *, after: int = 0, limit: int) -> None:
        self._converter = converter
        self._after = after
        self._limit = limit
        self.events: list[UniversalEvent] = []
        self.has_more = False

    def feed(self, entry: HistoryEntry) -> bool:
        """Take one entry; False once the page is full and known to have a successor: no need to read on."""
        fresh = [event for event in self._converter.feed(entry) if event.sequence > self._after]
        room = self._limit - len(self.events)
        self.events += fresh[:room]
        self.has_more = self.has_more or len(fresh) > room
        return not self.has_more
