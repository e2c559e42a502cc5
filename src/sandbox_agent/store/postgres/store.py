"""The store that servers share: PostgreSQL. What is told has been committed.

`append` hands out sequences at once, as every store does; a task commits what waits, under the epoch of each stream's
lease, and only then is anybody told (`once_safe`). Reads wait for that too, and find only what is committed. While the
database is away nothing is told, and agents wait once much is pending.

Streams of connections are this server's alone and are not kept for anybody: they lie in a file of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeGuard
from weakref import WeakValueDictionary

from sandbox_agent.core.ids import CONNECTION_PREFIX, AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.errors import NodeDraining, NotFound, SandboxAgentError, SessionElsewhere, StoreError
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
from sandbox_agent.store.batches import ROW_BYTES, encode_lines
from sandbox_agent.store.entries import Page
from sandbox_agent.store.membership import Membership
from sandbox_agent.store.operations import Append, DeleteSession, Drop, PutSession, PutTurn
from sandbox_agent.store.postgres import aliases, leases, reading, schema
from sandbox_agent.store.postgres.committing import Committer, StreamState
from sandbox_agent.store.postgres.connecting import Connection, Place, Readers, check_server
from sandbox_agent.store.postgres.directory import Directory
from sandbox_agent.store.postgres.upkeep import keep_up
from sandbox_agent.store.records import encode_record
from sandbox_agent.store.search import Findings, Query
from sandbox_agent.store.sqlite.store import SqliteStore
from sandbox_agent.version import __version__

_MANY = 1000
"""Lines of a stream that may wait for a flush."""
_PATIENCE = 10.0
"""Seconds that a read waits for what was appended before it to be committed."""
_CLOSE_SECONDS, _CLOSE_AWAY_SECONDS = 3.0, 0.5
"""How long the end waits for the last commits, and how long if they fail already."""
_RANDOM_NAME = re.compile(r"(?=(?:.*\d){2})[\w.:-]{16,}", re.ASCII)
_KEEP_ALL = Retention(age=None, bytes=None)
_log = logging.getLogger("sandbox_agent.store")


class PostgresStore:
    is_immediate = False

    def __init__(
        self, url: str, data_dir: Path, *, retention: Retention, memory_bytes: int, membership: Membership
    ) -> None:
        """`data_dir` keeps the name of this node, and what nobody else needs. Raises ConfigError."""
        self.directory: Directory
        """The nodes that share the database; there once it is open."""
        self._membership = membership
        self._place = Place(url)
        self._data_dir = data_dir
        self._retention = retention
        self._spool = SqliteStore(
            data_dir / "connections.db", retention=_KEEP_ALL, memory_bytes=memory_bytes, search_text_bytes=0
        )
        self._committer: Committer | None = None
        self._on_lost: Callable[[SessionKey, SandboxAgentError], None] = lambda key, error: None
        self._streams: dict[StreamKey, StreamState] = {}
        self._waiting: list[StreamState] = []
        self._updated: dict[SessionKey, float] = {}
        self._reserved: set[str] = set()
        self._moves = paging.MoveLog("")
        self._acquiring: WeakValueDictionary[StreamKey, asyncio.Lock] = WeakValueDictionary()
        self._damaged = 0
        self._ahead = 0.0
        """How far the database's clock is ahead of ours."""

    async def open(self) -> None:
        await self._spool.open()
        try:
            connection = await self._place.connect()
            try:
                await check_server(connection, self._place)
                await schema.migrate(connection, self._place)
                name = self._membership.node_id or node_id(self._data_dir)
                self._node = await leases.register(connection, name, self._membership, __version__)
                self._readers = Readers(self._place)
                self.directory = Directory(self._node, self._readers)
                await self._renew(connection)
            finally:
                connection.terminate()
        except BaseException:
            await self._spool.close()
            raise
        self._streams.clear()
        self._updated.clear()
        self._moves = paging.MoveLog(f"{self._node.id}/{self._node.incarnation}")
        self._committer = Committer(self._place, self._node, self._lost)
        self._keeper = asyncio.create_task(
            keep_up(
                self._readers,
                self._renew,
                self._superseded,
                self._retention,
                self._clock,
                lease=self._membership.lease,
            ),
            name="store-keeper",
        )

    async def close(self) -> None:
        if self._committer is None:
            return
        self.flush()
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)
        await self._committer.close(_CLOSE_SECONDS if self._committer.problem is None else _CLOSE_AWAY_SECONDS)
        self._committer = None
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(1.0), self._readers.lend() as connection:
                await leases.hand_back(connection, self._node)
        self._readers.close()
        await self._spool.close()

    async def acquire(self, stream: StreamKey) -> Lease:
        if stream.startswith(CONNECTION_PREFIX):
            return await self._spool.acquire(stream)
        async with self._acquiring.setdefault(stream, asyncio.Lock()):
            state = self._streams.get(stream)
            if state is None or state.lost is not None or (state.epoch is None and state.last == 0):
                found = await self._acquire(stream)
                state = self._streams.get(stream)
                if state is None or state.lost is not None or (state.epoch is None and state.last == 0):
                    state = StreamState(stream, last=found.last, epoch=found.epoch, time=found.ended)
                    self._streams[stream] = state
            elif state.epoch is None:
                await self._committed()
        return Lease(state.epoch or 0, state.last)

    async def release(self, stream: StreamKey) -> None:
        """Hand a stream on: another server may acquire it from now on, and here it is lost. Raises StoreError."""
        state = self._streams.get(stream)
        if state is None or state.epoch is None or state.lost is not None:
            return
        async with self._reading() as connection:
            await leases.release(connection, self._node, stream, state.epoch)
        session = stream.split(":", 2)[-1]
        moved = SessionElsewhere(f"session {session!r} moves to another node", sessionId=session)
        self._open_committer().lose(state, moved)

    async def release_unused(self) -> None:
        """Hand on every stream that this node owns and has not acquired since it started. Raises StoreError."""
        used = [state.stream for state in self._streams.values() if _is_ours(state)]
        async with self._reading() as connection:
            await leases.release_all_but(connection, self._node, used)

    def told(self, stream: StreamKey) -> int:
        """The newest entry that is committed: whoever follows the stream here has been told of all up to it."""
        state = self._streams.get(stream)
        return 0 if state is None else state.committed

    def lost(self, stream: StreamKey) -> SandboxAgentError | None:
        state = self._streams.get(stream)
        return None if state is None else state.lost

    def watch(self, on_lost: Callable[[SessionKey, SandboxAgentError], None]) -> None:
        self._on_lost = on_lost

    def append(self, stream: StreamKey, source: Source, lines: Sequence[bytes], *, flush: bool = True) -> int:
        if stream.startswith(CONNECTION_PREFIX):
            return self._spool.append(stream, source, lines, flush=flush)
        state = self._state(stream)
        first = state.last + 1
        if not lines:
            return first
        if state.source != source:
            self._cut(state)
            state.source = source
        if not state.waiting:
            self._waiting.append(state)
        state.waiting += lines
        state.last += len(lines)
        if flush or len(state.waiting) > _MANY:
            self.flush()
        return first

    def flush(self) -> None:
        self._spool.flush()
        waiting, self._waiting = self._waiting, []
        for state in waiting:
            self._cut(state)

    def once_safe(self, call: Callable[[], None]) -> None:
        self.flush()
        self._open_committer().once_done(call)

    async def safe(self) -> None:
        self.flush()
        await self._open_committer().done()

    def is_new(self, stream: StreamKey) -> bool:
        """Nobody is asked at once, so that the name has to look as if it was drawn: a UUID, not a number."""
        state = self._streams.get(stream)
        is_unknown = state is None or (state.last == 0 and state.epoch is None)
        return is_unknown and _RANDOM_NAME.fullmatch(stream.split(":", 2)[-1]) is not None

    def last_sequence(self, stream: StreamKey) -> int:
        if stream.startswith(CONNECTION_PREFIX):
            return self._spool.last_sequence(stream)
        return self._state(stream).last

    async def newest(self, stream: StreamKey) -> int:
        if stream.startswith(CONNECTION_PREFIX):
            return self._spool.last_sequence(stream)
        state = self._streams.get(stream)
        if _is_ours(state):
            return state.last
        async with self._reading() as connection:
            return await reading.select_last(connection, stream)

    async def read(self, stream: StreamKey, *, after: int, limit: int, max_bytes: int = 1 << 20) -> list[Entry]:
        if stream.startswith(CONNECTION_PREFIX):
            return await self._spool.read(stream, after=after, limit=limit, max_bytes=max_bytes)
        while True:
            state = self._streams.get(stream)
            page = Page(after=max(after, 0), limit=limit, max_bytes=max_bytes)
            if limit <= 0 or (_is_ours(state) and page.after >= state.last):
                return []
            async with self._reading() as connection:
                self._damaged += await reading.fill_page(connection, stream, page)
            if state is None or self._streams.get(stream) is state:
                return page.entries

    async def drop(self, stream: StreamKey) -> None:
        if stream.startswith(CONNECTION_PREFIX):
            await self._spool.drop(stream)
            return
        self.flush()
        state = self._streams.pop(stream, None) or StreamState(stream)
        self._open_committer().add(Drop(0, stream), state)

    @contextlib.asynccontextmanager
    async def reserved(self, alias: str) -> AsyncIterator[bool]:
        async with self._reading() as connection:  # what has taken a reservation of ours away must have been before
            is_ours = await aliases.reserve(connection, self._node, alias)
        if not is_ours:
            yield False
            return
        self._reserved.add(alias)
        try:
            yield True
        finally:
            if alias in self._reserved:  # no session was put that has it
                self._reserved.discard(alias)
                with contextlib.suppress(StoreError):  # it ends with this run of the server
                    async with self._readers.lend() as connection:
                        await aliases.give_back(connection, self._node, alias)

    def put_session(self, record: SessionRecord) -> None:
        key = record.key
        before = self._updated.get(key)
        if before is None and self._state(key.stream).epoch is not None:
            before = -math.inf  # it may have stood anywhere: listings under way give it rather than miss it
        if before is not None and before != record.updated:
            self._moves.record(key, before)
        self._updated[key] = record.updated
        if record.alias in self._reserved:
            self._reserved.discard(record.alias)
            self._state(key.stream).alias = record.alias
        record.owner = None  # who owns it stands with its lease, and may change without its record
        encoded, unfit = encode_record(record)
        record.owner = self._node.id
        if unfit:
            _log.error("session %s of agent %s: wrong values for %s", record.session_id, record.agent, ", ".join(unfit))
        self.flush()
        self._open_committer().add(PutSession(0, key, encoded), self._state(key.stream))

    async def get_session(self, key: SessionKey) -> SessionRecord | None:
        async with self._reading() as connection:
            found = await reading.select_session(connection, key)
        if found is not None and found.is_damaged:
            raise self._damaged_record(key)
        return None if found is None else found.record

    async def find_sessions(self, name: str) -> list[SessionRecord]:
        async with self._reading() as connection:
            found = await reading.select_named(connection, name)
        readable = [record for record, is_damaged in found if not is_damaged]
        if found and not readable:
            raise self._damaged_record(found[0].record.key)
        readable.sort(key=paging.position_of, reverse=True)
        return readable

    async def list_sessions(
        self, matching: SessionFilter, *, cursor: str | None = None, limit: int = 100
    ) -> SessionPage:
        start = paging.decode_cursor(cursor) if cursor is not None else None
        after = start.after if start else None
        now = self._moves.look()
        since = start.moves if start and start.log == self._moves.name else now
        limit = max(limit, 1)
        async with self._reading() as connection:
            found = await reading.select_sessions(connection, matching, after, limit + 1)
        page = [record for record, _ in found[:limit]]
        damaged = {record.key for record, is_damaged in found if is_damaged}
        end = paging.position_of(page[-1]) if len(found) > limit else None
        # No await between these: moves after this count are the next page's concern.
        moves = self._moves.look()
        shown = {record.key for record in page}
        escaped = [
            key
            for key in self._moves.escaped(since, after)
            if key not in shown and key in self._updated and (end is None or (self._updated[key], *key) >= end)
        ]
        unreadable = [record.key for record in page if record.key in damaged]
        page = [record for record in page if record.key not in damaged]
        for key in escaped:
            record = await self.get_session(key)
            if record is not None and paging.matches(record, matching):
                page.append(record)
        self._damaged += len(unreadable)
        following = paging.encode_cursor(paging.Cursor(end, moves, self._moves.name)) if end else None
        return SessionPage(page, following, unreadable)

    async def search(self, query: Query, *, limit: int, each: int) -> Findings:
        raise NotFound("full-text search is not available while history is kept in PostgreSQL")

    async def delete_session(self, key: SessionKey) -> None:
        self.flush()
        state = self._streams.pop(key.stream, None) or StreamState(key.stream)
        self._updated.pop(key, None)
        self._moves.forget(key)
        self._open_committer().add(DeleteSession(0, key), state)

    def put_turn(self, key: SessionKey, turn_id: str, answer: bytes | None) -> None:
        self.flush()
        self._open_committer().add(PutTurn(0, key, turn_id, answer), self._state(key.stream))

    async def get_turn(self, key: SessionKey, turn_id: str) -> tuple[bool, bytes | None]:
        async with self._reading() as connection:
            return await reading.select_turn(connection, key, turn_id)

    @property
    def is_degraded(self) -> bool:
        return self._committer is not None and self._committer.problem is not None

    def backlog(self) -> int:
        return self._committer.bytes if self._committer is not None else 0

    def health(self) -> StoreHealth:
        problem = self._committer.problem if self._committer is not None else None
        return StoreHealth(
            kind="postgresql",
            state="degraded" if problem else "ok",
            pending_bytes=self.backlog(),
            problem=problem,
            path=str(self._place),
            damaged=self._damaged,
        )

    @contextlib.asynccontextmanager
    async def _reading(self) -> AsyncIterator[Connection]:
        """A connection that finds everything that was appended and put before. Raises StoreError."""
        await self._committed()
        async with self._readers.lend() as connection:
            yield connection

    async def _committed(self) -> None:
        """Raise StoreError if it takes too long: whoever asks is told why."""
        self.flush()
        committer = self._open_committer()
        try:
            async with asyncio.timeout(_PATIENCE):
                await committer.done()
        except TimeoutError:
            reason = committer.problem or f"{self._place} is slow"
            raise StoreError(f"history cannot be read just now: {reason}") from None

    async def _renew(self, connection: Connection) -> None:
        asked = time.time()
        beat = await leases.renew(connection, self._node, self._membership.lease)
        self._ahead = beat.now - (asked + time.time()) / 2
        self.directory.is_to_drain = beat.is_draining
        self.directory.on_beat()

    async def _acquire(self, stream: StreamKey) -> leases.Acquired:
        if self.directory.is_draining:
            raise NodeDraining(f"node {self._node.id} is draining and takes no sessions: use another node")
        async with self._reading() as connection, connection.transaction():
            return await leases.acquire(
                connection,
                self._node,
                stream,
                lease=self._membership.lease,
                takes_over=self._membership.takes_over,
            )

    def _clock(self) -> float:
        return time.time() + self._ahead

    def _superseded(self, error: leases.Superseded) -> None:
        committer = self._open_committer()
        committer.supersede(error)
        for state in list(self._streams.values()):
            committer.lose(state, error)

    def _lost(self, state: StreamState) -> None:
        _, agent, session = (*state.stream.split(":", 2), "", "")[:3]
        if self._streams.get(state.stream) is state:
            self._on_lost(SessionKey(AgentId(agent), SessionId(session)), state.lost or StoreError("lost"))

    def _state(self, stream: StreamKey) -> StreamState:
        state = self._streams.get(stream)
        if state is None:
            state = self._streams[stream] = StreamState(stream)
            if self._committer is not None and self._committer.superseded is not None:
                state.lost = self._committer.superseded
        return state

    def _cut(self, state: StreamState) -> None:
        """Make an operation of the lines of a stream that wait, or several where they are many."""
        lines, state.waiting = state.waiting, []
        first = state.last + 1 - len(lines)
        now = state.time = max(self._clock(), state.time)
        while lines:
            part = lines
            while len(body := encode_lines(now, state.source, part)) > 2 * ROW_BYTES and len(part) > 1:
                part = part[: len(part) // 2]
            last = first + len(part) - 1
            self._open_committer().add(Append(0, state.stream, first, last, now, body), state)
            first, lines = last + 1, lines[len(part) :]

    def _open_committer(self) -> Committer:
        if self._committer is None:
            raise StoreError(f"the history database {self._place} is not open")
        return self._committer

    def _damaged_record(self, key: SessionKey) -> StoreError:
        self._damaged += 1
        return StoreError(
            f"the record of session {key.session!r} of agent {key.agent!r} in {self._place} is damaged: "
            "restore the database from a backup",
            sessionId=key.session,
        )


def _is_ours(state: StreamState | None) -> TypeGuard[StreamState]:
    """Whether nobody else can have appended to it."""
    return state is not None and state.epoch is not None and state.lost is None


def node_id(data_dir: Path) -> str:
    """The name of the server that uses this directory; made at its first start. Raises StoreError."""
    path = data_dir / "node-id"
    try:
        if not path.exists():
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_text(f"{secrets.token_hex(8)}\n", encoding="ascii")
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot keep the name of this node in {path}: {error}") from error
