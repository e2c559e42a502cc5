"""Carries out what a relay decides: the only place where decisions touch the pipe, the store and the streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sandbox_agent.core import effects as fx
from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, ConnectionId, SessionId, SessionKey, StreamKey
from sandbox_agent.core.methods import UNPARSED
from sandbox_agent.core.notices import line_of
from sandbox_agent.hub.agents.complaints import Complaints
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.store.base import Store

_log = logging.getLogger(__name__)


class Watcher(Protocol):
    """What the hub does about effects that reach beyond one agent's pipe and streams."""

    def observed(self, key: SessionKey, kind: str, line: bytes) -> None: ...
    def prompt_answered(self, agent: AgentId, effect: fx.Reply) -> None: ...
    def noticed(self, agent: AgentId, effect: fx.Notice) -> None: ...
    def replayed(self, key: SessionKey) -> None: ...
    def wake(self, key: SessionKey) -> None: ...
    def serve(self, agent: AgentId, effect: fx.Serve) -> None: ...
    def unattended(self, agent: AgentId, ask: int) -> None: ...


class Delivery:
    """One agent's hands. `send` writes to its stdin; `resolve` settles a request of the server's own."""

    def __init__(
        self,
        agent: AgentId,
        *,
        store: Store,
        connections: Mapping[ConnectionId, Connection],
        watcher: Watcher,
        send: Callable[[bytes], None],
        resolve: Callable[[int, bytes], None],
    ) -> None:
        self.events_in = 0
        self.events_out = 0
        self._agent = agent
        self._store = store
        self._connections = connections
        self._watcher = watcher
        self._resolve_call = resolve
        self._send_line = send
        self._complaints = Complaints(self._tell_skipped)
        self._streams: dict[SessionId, StreamKey] = {}
        self._turn_waiters: dict[SessionId, list[asyncio.Future[None]]] = {}
        self._actions: dict[type, Callable[[Any], None]] = {
            fx.Deliver: self._deliver,
            fx.Broadcast: self._broadcast,
            fx.Reply: self._reply,
            fx.Resolve: self._resolve,
            fx.Observed: self._observed,
            fx.Notice: self._notice,
            fx.Replayed: self._replayed,
            fx.Wake: self._wake,
            fx.Serve: self._serve,
            fx.Unattended: self._unattended,
            fx.Unparsed: self._unparsed,
            fx.Noted: self._noted,
        }

    def apply(self, effects: list[fx.Effect], *, flush: bool = True) -> None:
        """Remember first, in one go; then tell, in order, without waiting for anybody.

        Without `flush`, what is to be remembered may wait until the lines to the agent have left, with those of other
        calls, so that the agent need not wait for it: that is for calls that tell nobody but the agent."""
        told: list[tuple[fx.Effect, int]] = []
        for effect in effects:
            if isinstance(effect, fx.Send):
                self._send_line(effect.line)
            elif isinstance(effect, fx.Record):
                self._store.append(self._stream(effect.session), effect.source, [effect.line], flush=False)
            elif isinstance(effect, fx.Publish):
                stream = self._stream(effect.session)
                told.append((effect, self._store.append(stream, effect.source, effect.lines, flush=False)))
            elif isinstance(effect, fx.Unparsed):
                if (complaint := self._complaint(effect)) is not None:
                    told.append((complaint, 0))
            else:
                told.append((effect, 0))
        if flush or told:
            self._store.flush()
        for effect, sequence in told:
            if isinstance(effect, fx.Publish):
                self._publish(effect, sequence)
            else:
                self._actions[effect.__class__](effect)

    async def turn_ended(self, session: SessionId) -> None:
        """Return when the next turn of the session ends."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turn_waiters.setdefault(session, []).append(waiter)
        await waiter

    def _publish(self, effect: fx.Publish, sequence: int) -> None:
        stream = self._stream(effect.session)
        for connection_id in effect.connections:
            connection = self._connections.get(connection_id)
            if connection is not None:
                connection.deliver(effect.session, stream, sequence, effect.lines)
                self.events_out += len(effect.lines)
        self.events_in += len(effect.lines)

    def _deliver(self, effect: fx.Deliver) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.deliver_own(effect.session, effect.line)

    def _notice(self, effect: fx.Notice) -> None:
        line = line_of(effect) if effect.connections else b""
        for connection_id in effect.connections:
            connection = self._connections.get(connection_id)
            if connection is not None:
                connection.deliver_own(effect.session, line)
        if effect.name == "turn_ended":
            for waiter in self._turn_waiters.pop(effect.session, ()):
                if not waiter.done():
                    waiter.set_result(None)
        self._watcher.noticed(self._agent, effect)

    def _replayed(self, effect: fx.Replayed) -> None:
        self._watcher.replayed(SessionKey(self._agent, effect.session))

    def _broadcast(self, effect: fx.Broadcast) -> None:
        for connection in self._connections.values():
            if connection.agent == self._agent:
                connection.deliver_own(None, effect.line)

    def _reply(self, effect: fx.Reply) -> None:
        if effect.method == "session/prompt":
            self._watcher.prompt_answered(self._agent, effect)
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.reply(effect.ticket, effect.line, effect.session, effect.method)

    def _resolve(self, effect: fx.Resolve) -> None:
        self._resolve_call(effect.call, effect.line)

    def _observed(self, effect: fx.Observed) -> None:
        self._watcher.observed(SessionKey(self._agent, effect.session), effect.kind, effect.line)

    def _wake(self, effect: fx.Wake) -> None:
        self._watcher.wake(SessionKey(self._agent, effect.session))

    def _serve(self, effect: fx.Serve) -> None:
        self._watcher.serve(self._agent, effect)

    def _unattended(self, effect: fx.Unattended) -> None:
        self._watcher.unattended(self._agent, effect.ask)

    def _complaint(self, effect: fx.Unparsed) -> fx.Unparsed | None:
        """Remember an unparsed line where a turn runs; None if the agent has complained us full already."""
        if not self._complaints.admit(effect.count):
            return None
        for session in effect.sessions:
            line = self._unparsed_line(effect, session)
            self._store.append(self._stream(session), "server", [line], flush=False)
        return effect

    def _unparsed(self, effect: fx.Unparsed) -> None:
        _log.warning(
            "unparsed line agent=%s error=%s sha256=%s lines=%d",
            self._agent,
            effect.error,
            effect.raw_hash,
            effect.count,
        )
        self._broadcast(fx.Broadcast(self._unparsed_line(effect, None)))

    def _unparsed_line(self, effect: fx.Unparsed, session: SessionId | None) -> bytes:
        params: dict[str, Any] = {
            "error": effect.error,
            "location": effect.location,
            "raw_hash": effect.raw_hash,
            "agent": self._agent,
        }
        if effect.count > 1:
            params["lines"] = effect.count
        if session is not None:
            params = {"sessionId": session, **params, "_meta": {META: {"rawHash": effect.raw_hash}}}
        return frames.notification(UNPARSED, params)

    def _tell_skipped(self, count: int) -> None:
        """How many lines were not told of one by one."""
        self._unparsed(fx.Unparsed("more lines that are no JSON-RPC messages", "stdout", "", count=count))

    def _noted(self, effect: fx.Noted) -> None:
        _log.warning("agent=%s %s", self._agent, effect.message)

    def _stream(self, session: SessionId) -> StreamKey:
        stream = self._streams.get(session)
        if stream is None:
            stream = self._streams[session] = SessionKey(self._agent, session).stream
        return stream
