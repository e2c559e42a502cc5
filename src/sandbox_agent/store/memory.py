"""A store that forgets everything when the process ends."""

from __future__ import annotations

import itertools
import logging
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from sandbox_agent.core.ids import SessionKey, StreamKey
from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.store import paging
from sandbox_agent.store.base import (
    Entry,
    Lease,
    Retention,
    SessionFilter,
    SessionPage,
    SessionRecord,
    Source,
    StoreHealth,
)
from sandbox_agent.store.entries import Page
from sandbox_agent.store.memory_search import Batch, History, MemorySearch
from sandbox_agent.store.records import decode_record, encode_record
from sandbox_agent.store.search import Findings, Query

_numbers = itertools.count(1)
_log = logging.getLogger("sandbox_agent.store")


class MemoryStore:
    is_immediate = True

    def __init__(
        self,
        *,
        retention: Retention,
        clock: Callable[[], float] = time.time,
        reason: str | None = None,
    ) -> None:
        """`reason`: why it is this one though another was wanted."""
        self._clock = clock
        self._reason = reason
        self._retention = retention
        self._streams: dict[StreamKey, _Stream] = {}
        self._arrivals: deque[tuple[_Stream, _Batch]] = deque()
        self._bytes = 0
        self._sessions: dict[SessionKey, SessionRecord] = {}
        self._turns: dict[SessionKey, dict[str, bytes | None]] = {}
        self._moves = paging.MoveLog("memory")
        self._search = MemorySearch()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        async with self._search.turn:
            self._search.close()

    async def acquire(self, stream: StreamKey) -> Lease:
        return Lease(1, self.last_sequence(stream))

    def lost(self, stream: StreamKey) -> None:
        return None

    def watch(self, on_lost: Callable[[SessionKey, SandboxAgentError], None]) -> None:
        pass  # nobody else can have a stream of this store

    def once_safe(self, call: Callable[[], None]) -> None:
        call()

    async def safe(self) -> None:
        pass

    def is_new(self, stream: StreamKey) -> bool:
        return self.last_sequence(stream) == 0

    async def newest(self, stream: StreamKey) -> int:
        return self.last_sequence(stream)

    def flush(self) -> None:
        pass

    def append(self, stream: StreamKey, source: Source, lines: Sequence[bytes], *, flush: bool = True) -> int:
        found = self._streams.get(stream)
        if found is None:
            found = self._streams[stream] = _Stream()
        first = found.last + 1
        if not lines:
            return first
        batch = _Batch(first, first + len(lines) - 1, self._clock(), source, tuple(lines))
        found.last = batch.last
        found.batches.append(batch)
        if self._retention.age is not None or self._retention.bytes is not None:
            self._arrivals.append((found, batch))
            self._bytes += batch.size
            self._retain()
        return first

    def last_sequence(self, stream: StreamKey) -> int:
        found = self._streams.get(stream)
        return found.last if found else 0

    async def read(self, stream: StreamKey, *, after: int, limit: int, max_bytes: int = 1 << 20) -> list[Entry]:
        self._retain()
        page = Page(after=max(after, 0), limit=limit, max_bytes=max_bytes)
        found = self._streams.get(stream)
        if found is None:
            return []
        index = bisect_left(found.batches, page.after + 1, key=lambda batch: batch.last)
        while index < len(found.batches) and not page.is_full:
            batch = found.batches[index]
            page.add(batch.first, batch.time, batch.source, batch.lines)
            index += 1
        return page.entries

    async def drop(self, stream: StreamKey) -> None:
        found = self._streams.pop(stream, None)
        if found is not None and self._arrivals:
            self._arrivals = deque(arrival for arrival in self._arrivals if arrival[0] is not found)
            self._bytes -= sum(batch.size for batch in found.batches)

    def reserved(self, alias: str) -> AbstractAsyncContextManager[bool]:
        return nullcontext(enter_result=True)

    def put_session(self, record: SessionRecord) -> None:
        before = self._sessions.get(record.key)
        if before is not None and before.updated != record.updated:
            self._moves.record(record.key, before.updated)
        encoded, unfit = encode_record(record)
        if unfit:
            _log.error("session %s of agent %s: wrong values for %s", record.session_id, record.agent, ", ".join(unfit))
        self._sessions[record.key] = decode_record(encoded, None)

    async def get_session(self, key: SessionKey) -> SessionRecord | None:
        record = self._sessions.get(key)
        return None if record is None else self._count(record)

    async def find_sessions(self, name: str) -> list[SessionRecord]:
        return [
            self._count(record)
            for record in paging.merge([], self._sessions, SessionFilter(), None)
            if name in (record.session_id, record.alias)
        ]

    async def list_sessions(
        self, matching: SessionFilter, *, cursor: str | None = None, limit: int = 100
    ) -> SessionPage:
        start = paging.decode_cursor(cursor) if cursor is not None else None
        after = start.after if start else None
        limit = max(limit, 1)
        merged = paging.merge([], self._sessions, matching, after)
        page = merged[:limit]
        if start is not None and start.log == self._moves.name:
            escaped = (self._sessions.get(key) for key in self._moves.escaped(start.moves, start.after))
            page += [
                record
                for record in escaped
                if record is not None and paging.matches(record, matching) and paging.position_of(record) >= start.after
            ]
        following = None
        if len(merged) > limit:
            end = paging.position_of(merged[limit - 1])
            following = paging.encode_cursor(paging.Cursor(end, self._moves.look(), self._moves.name))
        return SessionPage([self._count(record) for record in page], following)

    async def search(self, query: Query, *, limit: int, each: int) -> Findings:
        async with self._search.turn:
            self._retain()
            found = await self._search.find(self._histories(), query, limit=limit, each=each)
        return Findings([hits for hits in found.sessions if hits.key in self._sessions], found.is_complete)

    async def delete_session(self, key: SessionKey) -> None:
        self._sessions.pop(key, None)
        self._moves.forget(key)
        self._turns.pop(key, None)
        await self.drop(key.stream)

    def put_turn(self, key: SessionKey, turn_id: str, answer: bytes | None) -> None:
        self._turns.setdefault(key, {})[turn_id] = answer

    async def get_turn(self, key: SessionKey, turn_id: str) -> tuple[bool, bytes | None]:
        turns = self._turns.get(key, {})
        return turn_id in turns, turns.get(turn_id)

    @property
    def is_degraded(self) -> bool:
        return False

    def backlog(self) -> int:
        return 0

    def health(self) -> StoreHealth:
        return StoreHealth(kind="memory", state="ok", problem=self._reason)

    def _histories(self) -> list[History]:
        streams = ((key, self._streams.get(key.stream)) for key in self._sessions)
        return [
            History(key, stream.number, stream.batches[0].first, stream.after(self._search.indexed(stream.number)))
            for key, stream in streams
            if stream is not None and stream.batches
        ]

    def _count(self, record: SessionRecord) -> SessionRecord:
        """A copy for the asker, with the number of its events."""
        return msgspec.structs.replace(record, event_count=self.last_sequence(record.key.stream))

    def _retain(self) -> None:
        age, most = self._retention.age, self._retention.bytes
        oldest = None if age is None else self._clock() - age
        while self._arrivals and (
            (oldest is not None and self._arrivals[0][1].time < oldest) or (most is not None and self._bytes > most)
        ):
            stream, batch = self._arrivals.popleft()
            self._bytes -= batch.size
            stream.batches.pop(0)


class _Batch(msgspec.Struct, frozen=True):
    first: int
    last: int
    time: float
    source: Source
    lines: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.lines))


class _Stream:
    __slots__ = ("batches", "last", "number")

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.last = 0
        self.batches: list[_Batch] = []

    def after(self, sequence: int) -> list[Batch]:
        """The batches later than an entry."""
        start = bisect_left(self.batches, sequence + 1, key=lambda batch: batch.last)
        return [Batch(batch.first, batch.time, batch.lines) for batch in self.batches[start:]]
