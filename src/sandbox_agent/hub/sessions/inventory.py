"""The inventory: every session that this server knows. `resolve` is the only way to name one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from sandbox_agent.core import config_options, frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, SessionName
from sandbox_agent.core.json_values import as_object, as_text
from sandbox_agent.errors import InvalidParams, SessionElsewhere, UnknownSession
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.sessions.views import summarize
from sandbox_agent.store.base import SessionFilter, SessionPage, SessionRecord, Store, alias_taken

_PAGE = 500


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
        self._deletions = 0
        self._barred: set[tuple[AgentId, str]] = set()

    def held(self, key: SessionKey) -> SessionRecord | None:
        return self._held.get(key)

    def require(self, record: SessionRecord) -> None:
        """To be called after a wait: what has the key of a deleted session then is another. Raises UnknownSession, and
        SessionElsewhere where another server has had it meanwhile."""
        held = self._held.get(record.key)
        if held is record:
            return
        lost = self._store.lost(record.key.stream)
        if lost is None and held is not None and held.created == record.created:
            lost = SessionElsewhere(f"another server has had session {record.session_id!r} meanwhile: try again")
        raise lost or UnknownSession(record.session_id)

    def all_held(self) -> list[SessionKey]:
        """Every session in use here."""
        return list(self._held)

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
        while True:
            deletions = self._deletions
            found = await self._acquired(await self.look_up(wanted))
            if deletions == self._deletions:  # else it may be one of those: nothing brings it back
                return self._hold(self._held.get(found.key, found))

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

    async def find(self, key: SessionKey) -> SessionRecord | None:
        """The record with this very key, for one who will change it."""
        while True:
            deletions = self._deletions
            found = self._held.get(key) or await self._store.get_session(key)
            if found is not None:
                found = await self._acquired(found)
            if deletions == self._deletions:
                return None if found is None else self._hold(self._held.get(key, found))

    async def safe(self) -> None:
        """Return when all that is known of sessions so far is remembered for good: then it can be told."""
        await self._store.safe()

    def lose(self, key: SessionKey) -> SessionRecord | None:
        """Another server has the session: what is known of it here is out of date."""
        record = self._held.pop(key, None)
        if record is not None:
            self._drop_names(record)
        return record

    async def origin(self, record: SessionRecord) -> tuple[SessionRecord, int] | None:
        """The session that this one is a fork of, and how far its history had come then; None if it was deleted."""
        origin = as_object(record.offered.get("forkedFrom"))
        sequence = origin.get("sequence")
        if not isinstance(sequence, int):
            return None
        key = SessionKey(record.agent, SessionId(as_text(origin.get("sessionId"))))
        parent = self._held.get(key) or await self._store.get_session(key)
        if parent is None or parent.created != origin.get("created", parent.created):  # a later one has that id
            return None
        return parent, sequence

    async def has_kept_its_name(self, record: SessionRecord) -> bool:
        """Whether the agent would still mean this session by its name for it, and not another."""
        if (record.agent, record.native) in self._barred or (record.native_id and record.name_given_to):
            return False
        first = await self.find(SessionKey(record.agent, SessionId(record.native)))
        if first is None:
            return True
        holder = first.name_given_to or first.session_id  # one that was made later gives the name to itself
        return holder == record.session_id

    async def called(self, agent: AgentId, native: str) -> list[SessionKey]:
        """The sessions that the agent calls so besides the one whose id that is. Reads every record of the agent."""
        found: list[SessionKey] = []
        cursor: str | None = None
        while True:
            page = await self._store.list_sessions(SessionFilter(agent=agent), cursor=cursor, limit=_PAGE)
            found += [record.key for record in page.sessions if record.native_id == native]
            cursor = page.next_cursor
            if cursor is None:
                return found

    def bar_name(self, agent: AgentId, native: str) -> None:
        """The agent has given the name to a session of which nothing could be written down."""
        self._barred.add((agent, native))

    async def is_alias(self, name: str) -> bool:
        """Whether a session is called so that has another id."""
        if name in self._aliases or name in self._reserved:
            return True
        return any(record.session_id != name for record in await self._store.find_sessions(name))

    @asynccontextmanager
    async def reserved(self, alias: str | None) -> AsyncIterator[None]:
        """Keep a name for a session that is being made. Raises Conflict if a session has it or is about to."""
        if alias is None:
            yield
            return
        taken = alias_taken(alias)
        if alias in self._reserved or alias in self._aliases:
            raise taken
        self._reserved.add(alias)  # before anything is waited for, so that of two who ask at once one gets it
        try:
            async with self._store.reserved(alias) as is_free:
                if not is_free or await self._store.find_sessions(alias):
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
        """Keep what has changed of it; nothing if it was deleted meanwhile."""
        if self._held.get(record.key) is not record:
            return
        self._put(record)
        self._tell("session.updated", record)

    def end(self, record: SessionRecord, reason: str) -> None:
        """As `save`, for one that has ended."""
        if self._held.get(record.key) is not record:
            return
        record.ended = time.time()
        record.ended_reason = reason
        self._put(record)
        self._tell("session.ended", record)

    async def delete(self, record: SessionRecord) -> None:
        self._deletions += 1
        self._held.pop(record.key, None)
        self._drop_names(record)
        await self._store.delete_session(record.key)
        self._tell("session.deleted", record)

    def observe(self, key: SessionKey, kind: str, line: bytes) -> None:
        """Learn from an update: title, mode, config options, usage."""
        record = self._held.get(key)
        if record is None:
            return
        update = msgspec.json.decode(frames.params_of(line), type=_Update).update
        if kind == "session_info_update":
            title = update.get("title", record.title)
            if isinstance(title, str | None) and "title" not in record.metadata:  # a person's title stays
                record.title = title
        elif kind == "usage_update":
            usage = _usage(update)
            if usage == record.usage:
                return
            record.usage = usage
        else:
            record.offered = config_options.after_update(record.offered, kind, update)
        self.save(record)

    def last_sequence(self, record: SessionRecord) -> int:
        """How far the session's history has come."""
        return self._store.last_sequence(record.key.stream)

    async def page(self, matching: SessionFilter, *, cursor: str | None, limit: int) -> SessionPage:
        return await self._store.list_sessions(matching, cursor=cursor, limit=limit)

    async def _acquired(self, record: SessionRecord) -> SessionRecord:
        """The record as it is once nobody else can change it."""
        if record.key not in self._held:
            await self._store.acquire(record.key.stream)
            if not self._store.is_immediate:
                return await self._store.get_session(record.key) or record
        return record

    def _drop_names(self, record: SessionRecord) -> None:
        self._by_id.get(record.session_id, set()).discard(record.key)
        if not self._by_id.get(record.session_id):
            self._by_id.pop(record.session_id, None)
        if record.alias:
            self._aliases.pop(record.alias, None)

    def _hold(self, record: SessionRecord) -> SessionRecord:
        """Keep a record at hand while its session is in use. Raises StoreError when its history cannot go on."""
        self.last_sequence(record)  # known from here on: what comes for the session later can be appended
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
        def view() -> dict[str, Any]:
            return {"agent": record.agent, "sessionId": record.session_id, "session": summarize(record)}

        if self._store.is_immediate:
            self._feed.tell(kind, view)
        else:
            self._store.once_safe(lambda: self._feed.tell(kind, view))


def _usage(update: Mapping[str, Any]) -> dict[str, Any]:
    """What of it is worth keeping, whatever else the agent has put there."""
    kept = {name: update[name] for name in ("used", "size") if _is_amount(update.get(name))}
    cost = update.get("cost")
    if isinstance(cost, dict) and _is_amount(cost.get("amount")):
        currency = cost.get("currency")
        kept["cost"] = {"amount": cost["amount"], **({"currency": currency[:10]} if isinstance(currency, str) else {})}
    return kept


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53
