"""The inventory: every session that this server knows. `resolve` is the only way to name one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from sandbox_agent.core import config_options, frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionId, SessionKey, SessionName
from sandbox_agent.errors import Conflict, InvalidParams, UnknownSession
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.sessions.views import summarize
from sandbox_agent.store.base import SessionFilter, SessionPage, SessionRecord, Store


class _Update(msgspec.Struct):
    update: dict[str, Any] = {}


class Inventory:
    """Records of sessions in use are held here; all others are read from the store when somebody asks."""

    def __init__(self, store: Store, feed: Feed) -> None:
        self._store = store
        self._feed = feed
        self._held: dict[SessionKey, SessionRecord] = {}
        self._by_id: dict[SessionId, set[SessionKey]] = {}
        self._aliases: dict[str, SessionKey] = {}
        self._reserved: set[str] = set()

    def held(self, key: SessionKey) -> SessionRecord | None:
        return self._held.get(key)

    def resolve_held(self, wanted: SessionName) -> SessionRecord | None:
        """The session in use that this name means, as far as can be said without the store."""
        session = SessionId(wanted.name)
        agent = wanted.agent or wanted.prefer
        found = self._held.get(SessionKey(agent, session)) if agent is not None else None
        if found is not None:
            return found
        key = self._aliases.get(wanted.name)
        if key is not None and wanted.agent in (None, key.agent):
            return self._held.get(key)
        keys = self._by_id.get(session, ()) if wanted.agent is None else ()
        return self._held.get(next(iter(keys))) if len(keys) == 1 else None

    async def resolve(self, wanted: SessionName) -> SessionRecord:
        """The session with this id or alias, for one who will use it: there is one record of it from now on.

        Raises UnknownSession, and InvalidParams when several agents have it."""
        return self._hold(await self.look_up(wanted))

    async def look_up(self, wanted: SessionName) -> SessionRecord:
        """As `resolve`, for one who only reads."""
        held = self.resolve_held(wanted)
        if held is not None:
            held.event_count = self.last_sequence(held)
            return held
        found = [self._held.get(record.key, record) for record in await self._store.find_sessions(wanted.name)]
        if wanted.agent is not None:
            chosen = [record for record in found if record.agent == wanted.agent]
        else:
            chosen = [record for record in found if record.agent == wanted.prefer] or found
        if not chosen:
            raise UnknownSession(wanted.name)
        if len(chosen) > 1:
            agents = ", ".join(sorted(record.agent for record in chosen))
            raise InvalidParams(
                f"session {wanted.name!r} exists at several agents ({agents}): "
                f"name one in _meta[{META!r}].agent, over HTTP with ?agent="
            )
        return chosen[0]

    @asynccontextmanager
    async def reserved(self, alias: str | None) -> AsyncIterator[None]:
        """Keep a name for a session that is being made. Raises Conflict if a session has it or is about to."""
        if alias is None:
            yield
            return
        taken = Conflict(f"a session with id or alias {alias!r} exists already")
        if alias in self._reserved or alias in self._aliases:
            raise taken
        self._reserved.add(alias)  # before anything is waited for, so that of two who ask at once one gets it
        try:
            if await self._store.find_sessions(alias):
                raise taken
            yield
        finally:
            self._reserved.discard(alias)

    def add(self, record: SessionRecord) -> SessionRecord:
        record.created = record.created or time.time()
        self._hold(record)
        self._put(record)
        self._tell("session.created", record)
        return record

    def save(self, record: SessionRecord) -> None:
        self._put(record)
        self._tell("session.updated", record)

    def end(self, record: SessionRecord, reason: str) -> None:
        record.ended = time.time()
        record.ended_reason = reason
        self._put(record)
        self._tell("session.ended", record)

    async def delete(self, record: SessionRecord) -> None:
        self._held.pop(record.key, None)
        self._by_id.get(record.session_id, set()).discard(record.key)
        if not self._by_id.get(record.session_id):
            self._by_id.pop(record.session_id, None)
        if record.alias:
            self._aliases.pop(record.alias, None)
        await self._store.delete_session(record.key)
        self._feed.tell("session.deleted", lambda: {"agent": record.agent, "sessionId": record.session_id})

    def observe(self, key: SessionKey, kind: str, line: bytes) -> None:
        """Learn from an update: title, mode, config options."""
        record = self._held.get(key)
        if record is None:
            return
        update = msgspec.json.decode(frames.params_of(line), type=_Update).update
        if kind == "session_info_update":
            if isinstance(update.get("title"), str) and "title" not in record.metadata:  # a person's title stays
                record.title = update["title"]
        else:
            record.offered = config_options.after_update(record.offered, kind, update)
        self.save(record)

    def last_sequence(self, record: SessionRecord) -> int:
        """How far the session's history has come."""
        return self._store.last_sequence(record.key.stream)

    async def page(self, matching: SessionFilter, *, cursor: str | None, limit: int) -> SessionPage:
        return await self._store.list_sessions(matching, cursor=cursor, limit=limit)

    def _hold(self, record: SessionRecord) -> SessionRecord:
        """Keep a record at hand while its session is in use."""
        self._held[record.key] = record
        self._by_id.setdefault(record.session_id, set()).add(record.key)
        if record.alias:
            self._aliases[record.alias] = record.key
        return record

    def _put(self, record: SessionRecord) -> None:
        record.updated = time.time()
        record.event_count = self.last_sequence(record)
        record.mode = config_options.current(record.offered, "mode") or record.mode
        record.model = config_options.current(record.offered, "model") or record.model
        self._store.put_session(record)

    def _tell(self, kind: str, record: SessionRecord) -> None:
        self._feed.tell(
            kind, lambda: {"agent": record.agent, "sessionId": record.session_id, "session": summarize(record)}
        )
