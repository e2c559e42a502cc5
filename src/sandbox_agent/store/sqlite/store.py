"""The embedded store: SQLite behind a journal.

`append` and `flush` write the journal (the page cache outlives us) and leave the rest to the writer's thread. Reads lay
what is still pending over what the database has, so they see everything that was appended before them.

When the disk is full the newest lines stay in memory, up to `memory_bytes`, and are tried again. Lines that
have to be given up keep their sequences: one notice, `_sandboxagent/history/lost`, stands at the last of
them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec

from sandbox_agent.core.ids import CONNECTION_PREFIX, SessionKey, StreamKey
from sandbox_agent.errors import SandboxAgentError, StoreError
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
from sandbox_agent.store.batches import ROW_BYTES, encode_lines, unpack_append
from sandbox_agent.store.entries import Page
from sandbox_agent.store.operations import Append, DeleteSession, Drop, PutSession, PutTurn
from sandbox_agent.store.records import decode_record, encode_record
from sandbox_agent.store.search import Findings, Query
from sandbox_agent.store.sqlite import reading
from sandbox_agent.store.sqlite.background import THREADS, Background
from sandbox_agent.store.sqlite.database import Database
from sandbox_agent.store.sqlite.disk import REAL, Disk
from sandbox_agent.store.sqlite.writer import Pace, Upkeep

_BODY_BYTES = 2 * ROW_BYTES
_MANY = 1000
"""Lines of a stream that may wait for a flush."""
_SHOWN = 1000
_log = logging.getLogger("sandbox_agent.store")


class SqliteStore:
    """Not for use by several threads: all but the waiting happens on the event loop's."""

    is_immediate = True

    def __init__(
        self,
        path: Path,
        *,
        retention: Retention,
        memory_bytes: int,
        search_text_bytes: int,
        clock: Callable[[], float] = time.time,
        pace: Pace | None = None,
        disk: Disk = REAL,
        background: Background = THREADS,
    ) -> None:
        """`path` is the database file; journal, lock and search index lie beside it."""
        upkeep = Upkeep(pace or Pace(), retention, clock)
        self._database = Database(
            path,
            upkeep=upkeep,
            memory_bytes=memory_bytes,
            search_text_bytes=search_text_bytes,
            disk=disk,
            background=background,
        )
        self._clock = clock
        self._streams: dict[StreamKey, _StreamState] = {}
        self._waiting: list[tuple[StreamKey, _StreamState]] = []
        self._unsubmitted: list[Append] = []
        self._updated: dict[SessionKey, float] = {}
        self._moves = paging.MoveLog("")

    async def open(self) -> None:
        await asyncio.to_thread(self._database.open)
        self._streams.clear()
        self._updated.clear()
        self._moves = paging.MoveLog(str(self._database.epoch))

    async def close(self) -> None:
        self.flush()
        await asyncio.to_thread(self._database.close)

    async def acquire(self, stream: StreamKey) -> Lease:
        """The epoch is the whole database's: one server at a time has it."""
        return Lease(self._database.epoch, self.last_sequence(stream))

    def lost(self, stream: StreamKey) -> None:
        return None

    def watch(self, on_lost: Callable[[SessionKey, SandboxAgentError], None]) -> None:
        pass  # nobody else can have a stream of this store

    def once_safe(self, call: Callable[[], None]) -> None:
        self.flush()
        call()

    async def safe(self) -> None:
        self.flush()

    def is_new(self, stream: StreamKey) -> bool:
        return self.last_sequence(stream) == 0

    async def newest(self, stream: StreamKey) -> int:
        return self.last_sequence(stream)

    def append(self, stream: StreamKey, source: Source, lines: Sequence[bytes], *, flush: bool = True) -> int:
        state = self._streams.get(stream) or self._state(stream)
        first = state.last + 1
        if not lines:
            return first
        if state.source != source:
            if state.waiting:
                self._cut(stream, state)
            state.source = source
        if not state.waiting:
            self._waiting.append((stream, state))
        state.waiting += lines
        state.last += len(lines)
        if flush or len(state.waiting) > _MANY:
            self.flush()
        return first

    def flush(self) -> None:
        if self._waiting:
            for stream, state in self._waiting:
                self._cut(stream, state)
            self._waiting.clear()
            operations, self._unsubmitted = self._unsubmitted, []
            if operations:
                self._database.submit(operations)

    def last_sequence(self, stream: StreamKey) -> int:
        return self._state(stream).last

    async def read(self, stream: StreamKey, *, after: int, limit: int, max_bytes: int = 1 << 20) -> list[Entry]:
        self.flush()
        while True:
            state = self._state(stream)
            page = Page(after=max(after, 0), limit=limit, max_bytes=max_bytes)
            if page.after >= state.last or limit <= 0:
                return []
            # Taken before we ask the database: what has left the tail by then is in there.
            tail = self._database.pending.tail(stream, page.after)
            if not tail.is_whole:
                self._database.troubles.damaged += await self._database.query(reading.fill_page, stream, page)
                if self._streams.get(stream) is not state:
                    continue  # dropped meanwhile: what we found may be of two streams of one name
            for append in tail.appends:
                if page.is_full:
                    break
                if append.last > page.after:
                    first, (at, source, lines) = unpack_append(append)
                    page.add(first, at, source, lines)
            return page.entries

    async def drop(self, stream: StreamKey) -> None:
        self.flush()
        self._forget_stream(stream)
        self._database.submit([Drop(self._database.next_number(), stream)])

    def reserved(self, alias: str) -> AbstractAsyncContextManager[bool]:
        return nullcontext(enter_result=True)

    def put_session(self, record: SessionRecord) -> None:
        key = record.key
        before = self._updated.get(key)
        if before is None:
            before = self._look_up_updated(key)
        if before is not None and before != record.updated:
            self._moves.record(key, before)
        self._updated[key] = record.updated
        encoded, unfit = encode_record(record)
        if unfit:
            self._tell_unfit(record, unfit)
        self.flush()
        self._database.submit([PutSession(self._database.next_number(), key, encoded)])

    async def get_session(self, key: SessionKey) -> SessionRecord | None:
        is_known, encoded = self._database.pending.session(key)
        if is_known:
            return None if encoded is None else self._decode(encoded)
        found = await self._database.query(reading.select_session, key)
        if found is not None and found.is_damaged:
            raise self._damaged(key)
        return None if found is None else self._count(found.record)

    async def find_sessions(self, name: str) -> list[SessionRecord]:
        newer = self._newer_sessions()
        stored = await self._database.query(reading.select_named, name)
        unreadable = [record.key for record, is_damaged in stored if is_damaged and record.key not in newer]
        merged = paging.merge([record for record, _ in stored], newer, SessionFilter(), None)
        named = [record for record in merged if name in (record.session_id, record.alias)]
        readable = [self._count(record) for record in named if record.key not in unreadable]
        if unreadable and not readable:
            raise self._damaged(unreadable[0])
        return readable

    async def list_sessions(
        self, matching: SessionFilter, *, cursor: str | None = None, limit: int = 100
    ) -> SessionPage:
        start = paging.decode_cursor(cursor) if cursor is not None else None
        after = start.after if start else None
        now = self._moves.look()
        since = start.moves if start and start.log == self._moves.name else now
        limit = max(limit, 1)
        newer = self._newer_sessions()
        stored = await self._database.query(reading.select_sessions, matching, after, limit + len(newer) + 1)
        damaged = {record.key for record, is_damaged in stored if is_damaged and record.key not in newer}
        merged = paging.merge([record for record, _ in stored], newer, matching, after)
        page = merged[:limit]
        end = paging.position_of(page[-1]) if len(merged) > limit else None
        # No await between these: moves after this count are the next page's concern.
        moves = self._moves.look()
        shown = {record.key for record in page}
        escaped = [
            key
            for key in self._moves.escaped(since, after)
            if key not in shown and key in self._updated and (end is None or (self._updated[key], *key) >= end)
        ]
        unreadable = [record.key for record in page if record.key in damaged]
        page = [self._count(record) for record in page if record.key not in damaged]
        for key in escaped:
            record = await self.get_session(key)
            if record is not None and paging.matches(record, matching):
                page.append(record)
        following = paging.encode_cursor(paging.Cursor(end, moves, self._moves.name)) if end else None
        self._database.troubles.damaged += len(unreadable)
        return SessionPage(page, following, unreadable)

    async def search(self, query: Query, *, limit: int, each: int) -> Findings:
        self.flush()
        found = await self._database.search(query, limit=limit, each=each)
        records = [await self.get_session(hits.key) for hits in found.sessions]
        sessions = [hits for hits, record in zip(found.sessions, records, strict=True) if record is not None]
        return Findings(sessions, found.is_complete)

    async def delete_session(self, key: SessionKey) -> None:
        self.flush()
        self._forget_stream(key.stream)
        self._updated.pop(key, None)
        self._moves.forget(key)
        self._database.submit([DeleteSession(self._database.next_number(), key)])

    def put_turn(self, key: SessionKey, turn_id: str, answer: bytes | None) -> None:
        self.flush()
        self._database.submit([PutTurn(self._database.next_number(), key, turn_id, answer)])

    async def get_turn(self, key: SessionKey, turn_id: str) -> tuple[bool, bytes | None]:
        is_known, turn = self._database.pending.turn(key, turn_id)
        if is_known:
            return turn is not None, turn.answer if turn else None
        return await self._database.query(reading.select_turn, key, turn_id)

    @property
    def is_degraded(self) -> bool:
        return self._database.troubles.is_degraded

    def backlog(self) -> int:
        return self._database.pending.bytes

    def health(self) -> StoreHealth:
        troubles = self._database.troubles
        problem = troubles.problem
        return StoreHealth(
            kind="sqlite",
            state="degraded" if problem else "ok",
            pending_bytes=self.backlog(),
            lost_entries=troubles.lost,
            problem=problem,
            path=str(self._database.path),
            damaged=troubles.damaged,
            set_aside=troubles.aside,
        )

    def _cut(self, stream: StreamKey, state: _StreamState) -> None:
        """Make an operation of the lines of a stream that wait, or several where they are many."""
        lines, state.waiting = state.waiting, []
        first = state.last + 1 - len(lines)
        now = self._clock()
        while lines:
            part = lines
            while len(body := encode_lines(now, state.source, part)) > _BODY_BYTES and len(part) > 1:
                part = part[: len(part) // 2]
            last = first + len(part) - 1
            self._unsubmitted.append(Append(self._database.next_number(), stream, first, last, now, body))
            if part is lines:
                break
            first, lines = last + 1, lines[len(part) :]

    def _state(self, stream: StreamKey) -> _StreamState:
        state = self._streams.get(stream)
        if state is None:
            # While a drop is pending, the database still has the stream that was dropped. Streams of connections that
            # we do not know are new: those of earlier servers were dropped at the start.
            is_new = stream.startswith(CONNECTION_PREFIX) or self._database.pending.is_dropped(stream)
            last = 0 if is_new else self._database.look_up(reading.select_last, stream)
            state = self._streams[stream] = _StreamState(last)
        return state

    def _look_up_updated(self, key: SessionKey) -> float | None:
        try:
            return self._database.look_up(reading.select_updated, key)
        except StoreError:
            return -math.inf  # it may have stood anywhere: listings under way give it rather than miss it

    def _damaged(self, key: SessionKey) -> StoreError:
        self._database.troubles.damaged += 1
        return StoreError(
            f"the record of session {key.session!r} of agent {key.agent!r} in {self._database.path} is damaged; "
            "`sandbox-agent store check --repair` restores what can be read of it",
            sessionId=key.session,
        )

    def _tell_unfit(self, record: SessionRecord, unfit: list[str]) -> None:
        """A record was given without some of its values: they go to where other things are that cannot be kept."""
        reason = f"session {record.session_id!r} of agent {record.agent!r}: wrong values for {', '.join(unfit)}"
        values = {name: repr(getattr(record, name))[:_SHOWN] for name in unfit}
        try:
            self._database.troubles.refuse_bytes(reason, msgspec.json.encode(values))
        except OSError as error:
            _log.error("%s; they cannot be set aside: %s", reason, error)

    def _forget_stream(self, stream: StreamKey) -> None:
        """Begin anew at sequence 1; reads under way notice that the state is another."""
        self._streams.pop(stream, None)

    def _newer_sessions(self) -> dict[SessionKey, SessionRecord | None]:
        return {
            key: None if encoded is None else self._decode(encoded)
            for key, encoded in self._database.pending.sessions().items()
        }

    def _decode(self, encoded: bytes) -> SessionRecord:
        record = decode_record(encoded, None)
        record.event_count = self.last_sequence(record.key.stream)
        return record

    def _count(self, record: SessionRecord) -> SessionRecord:
        """Appends that the database has not seen count as well."""
        state = self._streams.get(record.key.stream)
        if state is not None:
            record.event_count = state.last
        return record


class _StreamState:
    """`waiting` are its newest lines, all from `source`, which no operation has yet."""

    __slots__ = ("last", "source", "waiting")

    def __init__(self, last: int) -> None:
        self.last = last
        self.source: Source = "server"
        self.waiting: list[bytes] = []
