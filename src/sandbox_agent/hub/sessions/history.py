"""A session's history as clients read it: raw envelopes or universal events, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Raw

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.core.json_values import iso_time
from sandbox_agent.errors import InvalidParams
from sandbox_agent.history.universal import EventPage, UniversalEvents
from sandbox_agent.history.universal.correlation import correlated
from sandbox_agent.store.base import Entry, SessionRecord, Store

_CHUNK = 1000


class EventsWanted(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    session_id: str
    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    offset: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """What the earlier API called `after`: the last event seen."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    format: Literal["raw", "legacy"] = "raw"
    include_raw: bool = False
    meta: Any = msgspec.field(name="_meta", default=None)

    @property
    def seen(self) -> int:
        """The sequence of the last event that the reader has. Raises InvalidParams."""
        if self.after is not None and self.offset is not None and self.after != self.offset:
            raise InvalidParams("after and offset mean the same: give one of them")
        return self.after or self.offset or 0


class History:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def read_all(self, stream: StreamKey, *, after: int = 0) -> AsyncIterator[Entry]:
        """Every entry later than `after` that is there now."""
        last = await self._store.newest(stream)
        while after < last:
            entries = await self._store.read(stream, after=after, limit=_CHUNK)
            if not entries:
                return
            for entry in entries:
                yield entry
            after = entries[-1].sequence

    async def page(self, record: SessionRecord, wanted: EventsWanted, *, is_correlated: bool = False) -> dict[str, Any]:
        """`is_correlated`: envelopes say which events of the earlier API they are, as they do when they are live."""
        if wanted.format == "legacy":
            return await self._universal(record, wanted)
        return await self._raw(record, wanted, is_correlated=is_correlated)

    async def newest_time(self, record: SessionRecord) -> float:
        """When the newest entry was written, in seconds since the epoch; 0 if there is none."""
        stream = record.key.stream
        newest = await self._store.read(stream, after=await self._store.newest(stream) - 1, limit=1)
        return newest[0].time if newest else 0.0

    async def _raw(self, record: SessionRecord, wanted: EventsWanted, *, is_correlated: bool) -> dict[str, Any]:
        """`after` and `sequence` count envelopes. A page may be shorter than `limit` when they are large."""
        stream = record.key.stream
        last = await self._store.newest(stream)
        if wanted.seen > last:
            beyond = f"after: {wanted.seen} is beyond the end; the newest event is {last}"
            raise InvalidParams(beyond, lastSequence=last)
        entries = await self._store.read(stream, after=wanted.seen, limit=wanted.limit)
        said = await self._correlated(record, entries) if is_correlated else [entry.envelope for entry in entries]
        events = [
            {
                "sequence": entry.sequence,
                "time": iso_time(entry.time),
                "source": entry.source,
                "envelope": Raw(envelope),
            }
            for entry, envelope in zip(entries, said, strict=True)
        ]
        has_more = bool(entries) and entries[-1].sequence < await self._store.newest(stream)
        return {"sessionId": record.session_id, "events": events, "hasMore": has_more}

    async def _correlated(self, record: SessionRecord, entries: Sequence[Entry]) -> list[bytes]:
        """The envelopes of a page. What they are follows from all that came before."""
        converter = UniversalEvents(record.alias or record.session_id, native_session_id=record.native)
        wanted = {entry.sequence for entry in entries}
        said: list[bytes] = []
        async for entry in self.read_all(record.key.stream):
            if len(said) == len(wanted):
                break
            events = converter.feed(entry)
            if entry.sequence in wanted:
                said.append(correlated(entry.envelope, events))
        return [*said, *(entry.envelope for entry in entries[len(said) :])]  # a session that was deleted meanwhile

    async def _universal(self, record: SessionRecord, wanted: EventsWanted) -> dict[str, Any]:
        """Universal events are made from the start of the history each time, so that their numbers never change."""
        converter = UniversalEvents(
            record.alias or record.session_id, native_session_id=record.native, include_raw=wanted.include_raw
        )
        page = EventPage(converter, after=wanted.seen, limit=wanted.limit)
        async for entry in self.read_all(record.key.stream):
            if not page.feed(entry):
                break
        return {"sessionId": record.session_id, "events": page.events, "hasMore": page.has_more}
