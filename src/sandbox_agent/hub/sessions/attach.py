"""Bringing a client to a session that is there: with its conversation (load) or without (resume)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionId, SessionKey
from sandbox_agent.errors import SandboxAgentError, ShuttingDown
from sandbox_agent.history.replay import Replayer
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.waking import Waking
from sandbox_agent.store.base import Entry, SessionRecord, Store

_REPLAY_CHUNK = 4096

Convert = Callable[[Entry], list[bytes]]


class Attach:
    def __init__(self, store: Store, inventory: Inventory, agents: Agents, waking: Waking) -> None:
        self._store = store
        self._inventory = inventory
        self._agents = agents
        self._waking = waking

    async def announce(self, connection: Connection, record: SessionRecord, tell: Callable[[], None]) -> None:
        """`tell` the client of its new session, then deliver what the agent has sent since, then attach."""
        tell()
        await self._catch_up(connection, record.key, _updates_of)

    async def load(self, connection: Connection, record: SessionRecord) -> dict[str, Any]:
        """Replay the session to the one who asked, attach it, and wake the session if the agent can."""
        note: dict[str, Any] = {}
        try:
            await self._waking.live(record.key)
        except ShuttingDown:
            raise
        except SandboxAgentError as error:  # it can be read all the same; a prompt will say why it cannot go on
            note = {"readOnly": True, "reason": str(error)}
        await self._replay_parent(connection, record)
        replayer = Replayer(record.session_id)
        await self._catch_up(connection, record.key, replayer.feed, finish=replayer.finish)
        return _described(record, **note)

    async def resume(self, connection: Connection, record: SessionRecord) -> dict[str, Any]:
        """Attach without replay."""
        await self._waking.live(record.key)
        self._attach(connection, record.key)
        return _described(record)

    async def _replay_parent(self, connection: Connection, record: SessionRecord) -> None:
        """A fork's conversation begins with its parent's, up to the moment of the fork."""
        origin = record.offered.get("forkedFrom")
        if not origin:
            return
        parent = SessionKey(record.agent, SessionId(origin["sessionId"]))
        grandparent = self._inventory.held(parent) or await self._store.get_session(parent)
        if grandparent is not None:
            await self._replay_parent(connection, grandparent)
        replayer = Replayer(record.session_id)
        cursor = 0
        while cursor < origin["sequence"]:
            limit = min(_REPLAY_CHUNK, origin["sequence"] - cursor)
            entries = await self._store.read(parent.stream, after=cursor, limit=limit)
            if not entries:
                break
            cursor = entries[-1].sequence
            lines = [line for entry in entries if entry.sequence <= origin["sequence"] for line in replayer.feed(entry)]
            _deliver(connection, record.session_id, [_renamed(line, record.session_id) for line in lines])
        _deliver(connection, record.session_id, [_renamed(line, record.session_id) for line in replayer.finish()])

    async def _catch_up(
        self,
        connection: Connection,
        key: SessionKey,
        convert: Convert,
        finish: Callable[[], list[bytes]] = list,
    ) -> None:
        """Deliver the history so far and attach in the very step in which nothing is missing any more."""
        cursor = 0
        while cursor < self._store.last_sequence(key.stream):
            entries = await self._store.read(key.stream, after=cursor, limit=_REPLAY_CHUNK)
            if not entries:
                break
            cursor = entries[-1].sequence
            _deliver(connection, key.session, [line for entry in entries for line in convert(entry)])
        _deliver(connection, key.session, finish())
        self._attach(connection, key)

    def _attach(self, connection: Connection, key: SessionKey) -> None:
        agent = self._agents.get(key.agent)
        if not connection.is_closed:
            agent.open(key.session)
            agent.attach(connection.client, key.session)


def _deliver(connection: Connection, session: SessionId, lines: list[bytes]) -> None:
    for line in lines:
        connection.deliver_own(session, line)


def _updates_of(entry: Entry) -> list[bytes]:
    """What was told about a session, but not questions and answers."""
    frame = frames.parse(entry.envelope)
    is_told = entry.source != "client" and not frame.is_answer and not frame.is_request
    return [entry.envelope] if is_told else []


def _renamed(line: bytes, session: SessionId) -> bytes:
    return frames.with_params(line, {"sessionId": session})


def _described(record: SessionRecord, **note: Any) -> dict[str, Any]:
    """The answer to load and resume, from what we know of the session."""
    offered = {name: value for name, value in record.offered.items() if name != "forkedFrom"}
    return {**offered, "_meta": {META: {"agent": record.agent, "alias": record.alias, **note}}}
