"""The inventory: every session that this server knows, by agent and id or by alias."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from sandbox_agent.core import config_options as setup
from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionKey
from sandbox_agent.errors import Conflict, InvalidParams, UnknownSession
from sandbox_agent.store.base import SessionFilter, SessionPage, SessionRecord, Store


class _Update(msgspec.Struct):
    update: dict[str, Any] = {}


class Sessions:
    """Records of sessions in use are held here; all others are read from the store when somebody asks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[SessionKey, SessionRecord] = {}
        self._aliases: dict[str, SessionKey] = {}

    def held(self, key: SessionKey) -> SessionRecord | None:
        return self._held.get(key)

    def held_by_name(self, name: str, prefer: AgentId) -> SessionRecord | None:
        """A session in use with this id or alias, of the preferred agent if there are several."""
        key = self._aliases.get(name)
        if key is not None:
            return self._held[key]
        preferred = self._held.get(SessionKey(prefer, name))  # type: ignore[arg-type]  # a name may be an id
        if preferred is not None:
            return preferred
        found = [record for record in self._held.values() if record.session_id == name]
        return found[0] if len(found) == 1 else None

    async def find(self, name: str, prefer: AgentId | None = None) -> SessionRecord:
        """The session with this id or alias. Raises UnknownSession, and InvalidParams when several agents have it."""
        found = [self._held.get(record.key, record) for record in await self._store.find_sessions(name)]
        chosen = [record for record in found if record.agent == prefer] or found
        if not chosen:
            raise UnknownSession(name)
        if len(chosen) > 1:
            agents = ", ".join(sorted(record.agent for record in chosen))
            raise InvalidParams(
                f"session {name!r} exists at several agents ({agents}): name one in _meta[{META!r}].agent"
            )
        return self.hold(chosen[0])

    def hold(self, record: SessionRecord) -> SessionRecord:
        """Keep a record at hand while its session is in use."""
        self._held[record.key] = record
        if record.alias:
            self._aliases[record.alias] = record.key
        return record

    async def claim_alias(self, alias: str) -> None:
        """Raise Conflict if a session has this name already."""
        if alias in self._aliases or await self._store.find_sessions(alias):
            raise Conflict(f"a session with id or alias {alias!r} exists already")

    def add(self, record: SessionRecord) -> SessionRecord:
        record.created = record.created or time.time()
        self.hold(record)
        self.save(record)
        return record

    def save(self, record: SessionRecord) -> None:
        record.updated = time.time()
        record.mode = setup.current(record.setup, "mode") or record.mode
        record.model = setup.current(record.setup, "model") or record.model
        self._store.put_session(record)

    async def delete(self, record: SessionRecord) -> None:
        self._held.pop(record.key, None)
        if record.alias:
            self._aliases.pop(record.alias, None)
        await self._store.delete_session(record.key)

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
            record.setup = setup.after_update(record.setup, kind, update)
        self.save(record)

    async def page(self, matching: SessionFilter, *, cursor: str | None, limit: int) -> SessionPage:
        return await self._store.list_sessions(matching, cursor=cursor, limit=limit)
