"""A session's history as clients read it: raw envelopes or universal events, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Raw

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.core.json_values import iso_time
from sandbox_agent.errors import InvalidParams
from sandbox_agent.history.universal import EventPage, UniversalEvents
from sandbox_agent.store.base import Entry, SessionRecord, Store

_CHUNK = 1000


class EventsWanted(msgspec.Struct, rename="camel"):
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    format: Literal["raw", "legacy"] = "raw"
    include_raw: bool = False


class History:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def read_all(self, stream: StreamKey, *, after: int = 0) -> AsyncIterator[Entry]:
        """Every entry later than `after` that is there now."""
        last = self._store.last_sequence(stream)
        while after < last:
            entries = await self._store.read(stream, after=after, limit=_CHUNK)
            if not entries:
                return
            for entry in entries:
                yield entry
            after = entries[-1].sequence

    async def page(self, record: SessionRecord, wanted: EventsWanted) -> dict[str, Any]:
        if wanted.format == "legacy":
            return await self._universal(record, wanted)
        return await self._raw(record, wanted)

    async def newest_time(self, record: SessionRecord) -> float:
        """When the newest entry was written, in seconds since the epoch; 0 if there is none."""
        stream = record.key.stream
        newest = await self._store.read(stream, after=self._store.last_sequence(stream) - 1, limit=1)
        return newest[0].time if newest else 0.0

    async def _raw(self, record: SessionRecord, wanted: EventsWanted) -> dict[str, Any]:
        """`after` and `sequence` count envelopes. A page may be shorter than `limit` when they are large."""
        stream = record.key.stream
        last = self._store.last_sequence(stream)
        if wanted.after > last:
            beyond = f"after: {wanted.after} is beyond the end; the newest event is {last}"
            raise InvalidParams(beyond, lastSequence=last)
        entries = await self._store.read(stream, after=wanted.after, limit=wanted.limit)
        events = [
            {
                "sequence": entry.sequence,
                "time": iso_time(entry.time),
                "source": entry.source,
                "envelope": Raw(entry.envelope),
            }
            for entry in entries
        ]
        has_more = bool(entries) and entries[-1].sequence < self._store.last_sequence(stream)
        return {"sessionId": record.session_id, "events": events, "hasMore": has_more}

    async def _universal(self, record: SessionRecord, wanted: EventsWanted) -> dict[str, Any]:
        """Universal events are made from the start of the history each time, so that their numbers never change."""
        converter = UniversalEvents(
            record.alias or record.session_id, native_session_id=record.session_id, include_raw=wanted.include_raw
        )
        page = EventPage(converter, after=wanted.after, limit=wanted.limit)
        async for entry in self.read_all(record.key.stream):
            if not page.feed(entry):
                break
        return {"sessionId": record.session_id, "events": page.events, "hasMore": page.has_more}
