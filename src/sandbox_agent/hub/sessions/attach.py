"""Bringing a client to a session that is there: with its conversation (load) or without (resume)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sandbox_agent.core import frames, versions
from sandbox_agent.core.effects import Retold
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionId, SessionKey
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import RUNTIME_ERROR
from sandbox_agent.core.retelling import Retelling
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import InvalidParams, SandboxAgentError, ShuttingDown, StoreError
from sandbox_agent.history.replay import Replayer
from sandbox_agent.history.told import Told
from sandbox_agent.history.universal import UniversalEvent, UniversalEvents
from sandbox_agent.history.wording import Wording, version_at
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.waking import Waking
from sandbox_agent.store.base import Entry, SessionRecord, Store
from sandbox_agent.store.entries import lost_notice

_REPLAY_CHUNK = 4096

_CORRELATED_CHUNK = 250
"""Entries that are folded into events of the earlier API in one go."""

_HELD_READS = 8

Convert = Callable[[Entry, Sequence[UniversalEvent]], list[bytes]]
Pass = Callable[[Retold], None]


class _Held:
    """Entries for a client that is still to be told of its session: they are held for some reads of the history."""

    def __init__(self, connection: Connection, key: SessionKey, tell: Callable[[], None]) -> None:
        self._connection = connection
        self._key = key
        self._tell: Callable[[], None] | None = tell
        self._entries: list[Retold] = []

    def deliver(self, entries: Retold) -> None:
        self._entries.append(entries)
        if self._tell is None or len(self._entries) > _HELD_READS:
            self.release()

    def release(self) -> None:
        if self._tell is not None:
            tell, self._tell = self._tell, None
            tell()
        held, self._entries = self._entries, []
        for entries in held:
            _retell(self._connection, self._key, entries)


class Attach:
    def __init__(self, store: Store, inventory: Inventory, agents: Agents, waking: Waking) -> None:
        self._store = store
        self._inventory = inventory
        self._agents = agents
        self._waking = waking

    async def announce(self, connection: Connection, record: SessionRecord, tell: Callable[[], None]) -> None:
        """`tell` the client of its new session, then deliver what the agent has sent since, then attach.

        All in one step, once that is read: who is told may prompt at once, and is attached by that, and what is read
        afterwards would come twice. Only an agent that never stops talking is not waited for."""
        held = _Held(connection, record.key, tell)
        try:
            await self._catch_up(connection, record, Told().feed, held.deliver, before=held.release)
        except StoreError as error:  # it has its session, so that this must be told otherwise
            held.release()
            _deliver(connection, record.session_id, [_unreadable(record.session_id, error)])
            self._attach(connection, record.key)

    async def load(self, connection: Connection, record: SessionRecord) -> dict[str, Any]:
        """Replay the session to the one who asked, attach it, and wake the session if the agent can."""
        note: dict[str, Any] = {}
        try:
            await self._waking.live(record.key)
        except ShuttingDown:
            raise
        except SandboxAgentError as error:  # it can be read all the same; a prompt will say why it cannot go on
            note = {"readOnly": True, "reason": str(error)}
        self._inventory.require(record)
        await self._replay_parent(connection, record)
        replayer = Replayer(record.session_id, record.spoken)

        def replay(entries: Retold) -> None:
            _deliver(connection, record.session_id, _lines_of(entries))

        await self._catch_up(connection, record, replayer.feed, replay, finish=replayer.finish, is_replay=True)
        self._tell_state(connection, record.key)
        return _described(record, **note)

    async def resume(self, connection: Connection, record: SessionRecord) -> dict[str, Any]:
        """Attach without replay."""
        await self._waking.live(record.key)
        self._inventory.require(record)
        agent = self._agents.of(record.key)
        session = agent.sessions.get(record.session_id)
        is_foreign = connection.client.hears(agent.version) is not agent.version
        if is_foreign and session is not None and session.is_busy:
            await self._join_turn(connection, record)
        else:
            self._attach(connection, record.key)
        self._tell_state(connection, record.key)
        return _described(record)

    def join(self, connection: Connection, record: SessionRecord) -> None:
        """Attach one who has read the history, and wake nothing: questions that wait are for it too from now on."""
        self._attach(connection, record.key)

    async def follow(
        self,
        connection: Connection,
        record: SessionRecord,
        after: int,
        *,
        told: Callable[[int], None] = lambda sequence: None,
    ) -> int:
        """Deliver what was told of the session after entry `after`, then attach; wake nothing. Gives the newest entry.

        `told` hears how far it has come, for one who goes on after a failure. Raises InvalidParams, StoreError."""
        key, last = record.key, self._store.last_sequence(record.key.stream)
        if after > last:
            raise InvalidParams(f"after: {after} is beyond the end; the newest event is {last}", lastSequence=last)
        spoken = {version_at(record.spoken, after + 1), *(version for first, version in record.spoken if first > after)}
        if _read_by(connection) is None or spoken == {connection.version}:
            after = await self._follow_as_spoken(connection, key, after, told)
            self._attach(connection, key)
        else:
            after = await self._follow_retold(connection, record, after, told)
        self._tell_state(connection, key)
        return after

    async def _follow_as_spoken(
        self, connection: Connection, key: SessionKey, after: int, told: Callable[[int], None]
    ) -> int:
        while after < self._store.last_sequence(key.stream):
            entries = await self._store.read(key.stream, after=after, limit=_REPLAY_CHUNK)
            if not entries:
                break
            _tell_lost(connection, key.session, after, entries[0].sequence)
            for first, lines in _told_runs(entries):
                connection.deliver(key.session, key.stream, first, lines)
            after = entries[-1].sequence
            told(after)
        return after

    async def _follow_retold(
        self, connection: Connection, record: SessionRecord, after: int, told: Callable[[int], None]
    ) -> int:
        """In the client's version. All of the history is read: what an entry is there depends on those before it."""
        key, last = record.key, after

        def deliver(entries: Retold) -> None:
            nonlocal last
            fresh = [(at, lines) for at, lines in entries if at > last or at == after == 0]
            if fresh:
                _tell_lost(connection, key.session, last, fresh[0][0])
                last = fresh[-1][0]
            _retell(connection, key, fresh)
            told(last)

        await self._catch_up(connection, record, Told(connection.version, record.spoken).feed, deliver)
        return last

    async def _join_turn(self, connection: Connection, record: SessionRecord) -> None:
        """Attach one who reads another version while a turn runs: what it is told next depends on what was said."""
        try:
            told = Told(connection.version, record.spoken)
            await self._catch_up(connection, record, told.feed, lambda entries: None)
        except StoreError:
            self._attach(connection, record.key)

    async def _replay_parent(self, connection: Connection, record: SessionRecord) -> None:
        """A fork's conversation begins with its parent's, up to the moment of the fork."""
        found = await self._inventory.origin(record)
        if found is None:
            return
        parent, until = found
        await self._replay_parent(connection, parent)
        replayer = Replayer(record.session_id, parent.spoken)
        wording = Wording(parent.session_id, to=_read_by(connection), spoken=parent.spoken, is_replay=True)
        cursor = 0
        while cursor < until:
            entries = await self._store.read(parent.key.stream, after=cursor, limit=min(_REPLAY_CHUNK, until - cursor))
            if not entries:
                break
            cursor = entries[-1].sequence
            old = [entry for entry in entries if entry.sequence <= until]
            lines = [line for entry in old for line in _worded(wording, entry, replayer.feed(entry))]
            _deliver(connection, record.session_id, [_renamed(line, record.session_id) for line in lines])
        left = wording.of(until, replayer.finish())
        _deliver(connection, record.session_id, [_renamed(line, record.session_id) for line in left])

    async def _catch_up(
        self,
        connection: Connection,
        record: SessionRecord,
        convert: Convert,
        deliver: Pass,
        finish: Callable[[], list[bytes]] = list,
        *,
        is_replay: bool = False,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """Deliver the history, and attach in the very step in which nothing is missing any more, after `before`."""
        key, agent = record.key, self._agents.of(record.key)
        wording = Wording(key.session, to=_read_by(connection), spoken=record.spoken, is_replay=is_replay)
        deliver([(0, wording.opened(agent.version, _offers(agent, record)))])
        events_of = _events_of(connection, record)
        limit = _CORRELATED_CHUNK if connection.is_correlated else _REPLAY_CHUNK
        cursor = 0
        while cursor < self._store.last_sequence(key.stream):
            entries = await self._store.read(key.stream, after=cursor, limit=limit)
            if not entries:
                break
            cursor = entries[-1].sequence
            deliver([(e.sequence, _worded(wording, e, convert(e, events_of(e)))) for e in entries])
        deliver([(cursor, wording.of(cursor, finish()))])
        before()
        self._attach(connection, key, wording.retelling(agent.version))

    def _attach(self, connection: Connection, key: SessionKey, retelling: Retelling | None = None) -> None:
        agent = self._agents.of(key)
        if not connection.is_closed:
            agent.open(key.session)
            connection.attached(key, self._store.last_sequence(key.stream))
            agent.attach(connection.client, key.session, retelling)

    def _tell_state(self, connection: Connection, key: SessionKey) -> None:
        """Version 2 wants to know what a session does before the answer that attaches to it."""
        agent = self._agents.of(key)
        if connection.client.hears(agent.version) is Version.V2 and not connection.is_closed:
            connection.deliver_own(key.session, agent.snapshot(key.session))


def _read_by(connection: Connection) -> Version | None:
    return None if connection.client.hears_all else connection.version


def _deliver(connection: Connection, session: SessionId, lines: list[bytes]) -> None:
    if lines:
        connection.deliver_replayed(session, lines)


def _retell(connection: Connection, key: SessionKey, entries: Retold) -> None:
    if told := [(at, lines) for at, lines in entries if lines]:
        connection.deliver_retold(key.session, key.stream, told)


def _lines_of(entries: Retold) -> list[bytes]:
    return [line for _, lines in entries for line in lines]


def _worded(wording: Wording, entry: Entry, lines: list[bytes]) -> list[bytes]:
    wording.note(entry.sequence, entry.source, entry.envelope)
    return wording.of(entry.sequence, lines)


def _offers(agent: Agent, record: SessionRecord) -> Any:
    """What the session has to choose from, in the agent's version: as its process said, or as it was last known."""
    session = agent.sessions.get(record.session_id)
    opened = None if session is None else read_json(session.opened)
    return opened or versions.result("session/new", record.offered, from_=Version.V1, to=agent.version, asked={})


def _tell_lost(connection: Connection, session: SessionId, after: int, first: int) -> None:
    """Entries between these two are not kept any more."""
    if first > after + 1:
        connection.deliver_own(session, lost_notice(after + 1, first - 1, "it is older than what is kept"))


def _events_of(connection: Connection, record: SessionRecord) -> Callable[[Entry], Sequence[UniversalEvent]]:
    """What the earlier API made of each entry, for those who ask for it and read what was really said."""
    if not connection.is_correlated:
        return lambda _: ()
    converter = UniversalEvents(record.alias or record.session_id, native_session_id=record.native)

    def events_of(entry: Entry) -> Sequence[UniversalEvent]:
        events = converter.feed(entry)
        return events if version_at(record.spoken, entry.sequence) is connection.version else ()

    return events_of


def _unreadable(session: SessionId, error: StoreError) -> bytes:
    message = f"what the agent has sent so far stands in the history, which cannot be read now: {error.detail}"
    params = {"sessionId": session, "code": error.kind, "message": message, "details": error.data}
    return frames.notification(RUNTIME_ERROR, params)


def _told_runs(entries: Sequence[Entry]) -> list[tuple[int, list[bytes]]]:
    """What was told of neighbouring entries: the first of each run, and its lines."""
    runs: list[tuple[int, list[bytes]]] = []
    told = Told()
    for entry in entries:
        lines = told.feed(entry)
        if lines and runs and runs[-1][0] + len(runs[-1][1]) == entry.sequence:
            runs[-1][1].extend(lines)
        elif lines:
            runs.append((entry.sequence, lines))
    return runs


def _renamed(line: bytes, session: SessionId) -> bytes:
    return frames.with_params(line, {"sessionId": session})


def _described(record: SessionRecord, **note: Any) -> dict[str, Any]:
    """The answer to load and resume, from what we know of the session."""
    offered = {name: value for name, value in record.offered.items() if name != "forkedFrom"}
    return {**offered, "_meta": {META: {"agent": record.agent, "alias": record.alias, **note}}}
