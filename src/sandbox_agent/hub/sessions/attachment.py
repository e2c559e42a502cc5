"""Bringing a client to a session: new, load, resume, fork; and waking sessions that no process holds any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from sandbox_agent.core import config_options as setup
from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.route import Route
from sandbox_agent.errors import (
    InvalidParams,
    RemoteError,
    SandboxAgentError,
    SessionEnded,
    ShuttingDown,
    UnknownSession,
)
from sandbox_agent.history.replay import Replayer
from sandbox_agent.hub.agents.agent import Agent, Initialized
from sandbox_agent.hub.agents.authentication import AUTH_REQUIRED
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.sessions.creation import kept_policy
from sandbox_agent.hub.sessions.inventory import Sessions
from sandbox_agent.store.base import Entry, SessionRecord, Store

_WAKE_TIMEOUT = 120.0
_REPLAY_CHUNK = 4096
_REPLAY_QUIET, _REPLAY_TIMEOUT = 0.15, 10.0
"""A replay is over when the agent has been silent about the session for so long; the bound on that wait."""

Convert = Callable[[Entry], list[bytes]]


class Attachment:
    """The steps are the server's own requests, so that the client hears of the session before its updates."""

    def __init__(self, store: Store, sessions: Sessions, agent: Callable[[AgentId], Agent]) -> None:
        self._store = store
        self._sessions = sessions
        self._agent = agent
        self._waking: dict[SessionKey, asyncio.Task[None]] = {}

    async def announce(self, connection: Connection, record: SessionRecord, tell: Callable[[], None]) -> None:
        """`tell` the client of its new session, then deliver what the agent has sent since, then attach."""
        tell()
        await self._catch_up(connection, record.key, _updates_of)

    async def load(self, request: Request) -> None:
        """Replay the session to the one who asked, attach it, and wake the session if the agent can."""
        record = await self._known(request)
        if record is None:
            await self._load_from_agent(request)
            return
        key = record.key
        route = self._agent(key.agent).relay.open_route(key.session, is_live=False)
        note: dict[str, Any] = {}
        if not route.is_live:
            try:
                await self.wake(key)
            except ShuttingDown:
                raise
            except SandboxAgentError as error:  # it can be read all the same; a prompt will say why it cannot go on
                note = {"readOnly": True, "reason": str(error)}
        await self._replay_parent(request.connection, record)
        replayer = Replayer(key.session)
        await self._catch_up(request.connection, key, replayer.feed, finish=replayer.finish)
        request.answer(_described(record, **note), key.session)

    async def resume(self, request: Request) -> None:
        """Attach without replay."""
        record = await self._known(request)
        if record is None:
            await self._load_from_agent(request)
            return
        await self.live(record.key)
        self._attach(request.connection, record.key)
        request.answer(_described(record), record.session_id)

    async def live(self, key: SessionKey) -> None:
        """Return when the running process holds the session. Raises why it cannot."""
        agent = self._agent(key.agent)
        if not agent.relay.open_route(key.session, is_live=False).is_live:
            await self.wake(key)

    async def wake(self, key: SessionKey) -> None:
        """Have the process take the session up again, once for all who ask. Raises why it cannot."""
        task = self._waking.get(key)
        if task is None:
            task = self._waking[key] = asyncio.create_task(self._wake(key), name=f"wake-{key.session}")
            task.add_done_callback(lambda done: self._wake_done(key, done))
        await asyncio.shield(task)

    async def _wake(self, key: SessionKey) -> None:
        agent = self._agent(key.agent)
        try:
            record = self._sessions.held(key) or await self._sessions.find(key.session, key.agent)
            if record.ended is not None:
                raise SessionEnded(f"session {key.session!r} has ended: {record.ended_reason}", sessionId=key.session)
            initialized = await agent.ready()
            route = agent.relay.open_route(key.session, is_live=False)
            if route.is_live:
                return
            if not (initialized.can("resume") or initialized.can("load")):
                raise SessionEnded(
                    f"agent {key.agent!r} can neither resume nor load sessions: {key.session!r} can be read only",
                    sessionId=key.session,
                )
            route.policy = kept_policy(record.permission_mode, agent.default_policy)
            route.is_muted = True
            result = await self._take_up(agent, initialized, record)
        except SandboxAgentError as error:
            agent.apply(agent.relay.wake_failed(key.session, error))
            raise
        record.setup = {**record.setup, **setup.from_answer(result)}
        self._sessions.save(record)
        agent.apply(agent.relay.woken(key.session))

    async def _take_up(self, agent: Agent, initialized: Initialized, record: SessionRecord) -> Any:
        """Resume, or load where the agent cannot resume or fails to. Raises SessionEnded with the agent's reason."""
        params = {"sessionId": record.session_id, "cwd": record.cwd or "/", "mcpServers": record.mcp_servers}
        verbs = [verb for verb in ("resume", "load") if initialized.can(verb)]
        for verb in verbs:
            try:
                result = await agent.request(
                    f"session/{verb}", params, session=record.session_id, timeout=_WAKE_TIMEOUT
                )
            except RemoteError as error:
                if error.body.get("code") == AUTH_REQUIRED:
                    raise
                if verb == verbs[-1]:
                    raise SessionEnded(
                        f"agent {agent.id!r} could not {verb} session {record.session_id!r}: {error.words}",
                        sessionId=record.session_id,
                        agentError=error.body,
                    ) from None
            else:
                if verb == "load":
                    await _replay_over(agent.relay.open_route(record.session_id, is_live=False))
                return result
        return {}

    def _wake_done(self, key: SessionKey, task: asyncio.Task[None]) -> None:
        del self._waking[key]
        if not task.cancelled():
            task.exception()  # whoever waits has got it

    async def _known(self, request: Request) -> SessionRecord | None:
        name = request.frame.session
        if name is None:
            raise InvalidParams(f"params of {request.method}: sessionId is missing")
        prefer = request.meta().get("agent") or request.connection.agent
        try:
            return await self._sessions.find(name, prefer)
        except UnknownSession:
            return None

    async def _load_from_agent(self, request: Request) -> None:
        """A session that only the agent knows: its replay is new to us, so it is recorded."""
        agent = self._agent(AgentId(request.meta().get("agent") or request.connection.agent))
        initialized = await agent.ready()
        session = SessionId(request.frame.session or "")
        verb = request.method.partition("/")[2]
        if not initialized.can(verb):
            raise UnknownSession(session)
        params = request.params()
        route = agent.relay.open_route(session, is_live=True)
        agent.apply(agent.relay.attach(request.connection.client, session))
        try:
            result = await agent.request(
                request.method, params, session=session, on_behalf=request.behalf, timeout=None
            )
        except SandboxAgentError as error:
            if agent.relay.routes.get(session) is route:
                agent.apply(agent.relay.wake_failed(session, error))
                del agent.relay.routes[session]
            raise
        record = SessionRecord(
            agent=agent.id,
            session_id=session,
            cwd=params.get("cwd"),
            mcp_servers=params.get("mcpServers") or [],
            setup=setup.from_answer(result),
        )
        self._sessions.add(record)
        request.answer(result if result is not None else {}, session)

    async def _replay_parent(self, connection: Connection, record: SessionRecord) -> None:
        """A fork's conversation begins with its parent's, up to the moment of the fork."""
        origin = record.setup.get("forkedFrom")
        if not origin:
            return
        parent = SessionKey(record.agent, SessionId(origin["sessionId"]))
        grandparent = self._sessions.held(parent) or await self._store.get_session(parent)
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
        agent = self._agent(key.agent)
        if not connection.is_closed:
            agent.apply(agent.relay.attach(connection.client, key.session))


async def _replay_over(route: Route) -> None:
    """Return when the replay has ended: some agents answer `session/load` first and replay then."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REPLAY_TIMEOUT):
            seen = -1
            while seen != route.muted_updates:
                seen = route.muted_updates
                await asyncio.sleep(_REPLAY_QUIET)


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
    offered = {name: value for name, value in record.setup.items() if name != "forkedFrom"}
    return {**offered, "_meta": {META: {"agent": record.agent, "alias": record.alias, **note}}}
