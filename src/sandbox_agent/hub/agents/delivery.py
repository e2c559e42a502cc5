"""Carries out what a relay decides: the only place where decisions touch the pipe, the store and the streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from sandbox_agent.core import effects as fx
from sandbox_agent.core import frames
from sandbox_agent.core.effects import Publish, Record, Send
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import ConnectionId, SessionId, SessionKey, StreamKey
from sandbox_agent.core.interpreter import Interpreter
from sandbox_agent.core.methods import UNPARSED
from sandbox_agent.core.notices import line_of
from sandbox_agent.hub.agents.complaints import Complaints
from sandbox_agent.hub.agents.recorder import Recorder
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.sessions.growth import Growth
from sandbox_agent.store.base import Source, Store

if TYPE_CHECKING:
    from sandbox_agent.hub.agents.agent import Agent

_log = logging.getLogger(__name__)


class Watcher(Protocol):
    """What the hub does about effects that reach beyond one agent's pipe and streams."""

    growth: Growth

    def observed(self, agent: Agent, effect: fx.Observed) -> None: ...
    def prompt_answered(self, agent: Agent, effect: fx.Reply) -> None: ...
    def taken_up(self, agent: Agent, effect: fx.TakenUp) -> None: ...
    def announced(self, agent: Agent, effect: fx.Announced) -> None: ...
    def noticed(self, agent: Agent, effect: fx.Notice) -> None: ...
    def replayed(self, key: SessionKey) -> None: ...
    def wake(self, key: SessionKey) -> None: ...
    def name_lost(self, agent: Agent, session: SessionId) -> None: ...
    def serve(self, agent: Agent, effect: fx.Serve) -> None: ...
    def unattended(self, agent: Agent, ask: int) -> None: ...


class Delivery:
    """One agent's hands. `send` writes to its stdin; `resolve` settles a request of the server's own."""

    def __init__(
        self,
        agent: Agent,
        *,
        store: Store,
        connections: Mapping[ConnectionId, Connection],
        watcher: Watcher,
        interpreter: Interpreter,
        mixed: AbstractSet[SessionId],
        send: Callable[[bytes], None],
        resolve: Callable[[int, bytes], None],
    ) -> None:
        """`mixed` are the sessions that the interpreter is needed for."""
        self.events_in = 0
        self.events_out = 0
        self._owner = agent
        self._agent = agent.id
        self._store = store
        self._recorder = Recorder(store)
        self._connections = connections
        self._watcher = watcher
        self._growth = watcher.growth
        self._interpreter = interpreter
        self._mixed = mixed
        self._resolve_call = resolve
        self._send_line = send
        self._complaints = Complaints(self._tell_skipped)
        self._notes = Complaints(self._log_skipped)
        self._streams: dict[SessionId, StreamKey] = {}
        self._grown: dict[SessionId, int] = {}
        """Where each session's history began to grow, while somebody follows that and has not been told."""
        self._turn_waiters: dict[SessionId, list[asyncio.Future[None]]] = {}
        self._actions: dict[type, Callable[[Any], None]] = {
            fx.Send: self._send,
            fx.Deliver: self._deliver,
            fx.Tell: self._tell,
            fx.Retell: self._retell,
            fx.Broadcast: self._broadcast,
            fx.Reply: self._reply,
            fx.TakenUp: self._taken_up,
            fx.Announced: self._announced,
            fx.Resolve: self._resolve,
            fx.Observed: self._observed,
            fx.Notice: self._notice,
            fx.Replayed: self._replayed,
            fx.Wake: self._wake,
            fx.NameLost: self._name_lost,
            fx.Serve: self._serve,
            fx.Unattended: self._unattended,
            fx.Unparsed: self._unparsed,
            fx.Noted: self._noted,
        }

    def apply(self, effects: list[fx.Effect], *, flush: bool = True) -> None:
        """Remember first, in one go; then tell, in order, without waiting for anybody.

        Without `flush`, what is to be remembered may wait until the lines to the agent have left, with those of other
        calls, so that the agent need not wait for it: that is for calls that tell nobody but the agent."""
        if self._mixed:
            self.apply_once_safe(effects)
            return
        told: list[fx.Effect] = []
        firsts: list[int] = []
        """The sequences of what is published, in order."""
        for effect in effects:
            if isinstance(effect, Send):
                self._send_line(effect.line)
            elif isinstance(effect, Record):
                self._remember(effect.session, effect.source, [effect.line])
            elif isinstance(effect, Publish):
                firsts.append(self._remember(effect.session, effect.source, effect.lines))
                told.append(effect)
            elif isinstance(effect, fx.Unparsed):
                if (complaint := self._complaint(effect)) is not None:
                    told.append(complaint)
            else:
                told.append(effect)
        if flush or told:
            self._store.flush()
        if self._grown:
            grown, self._grown = self._grown, {}
            self._tell_growth(grown)
        published = iter(firsts)
        for effect in told:
            if isinstance(effect, Publish):
                self._publish(effect, next(published))
            else:
                self._actions[effect.__class__](effect)

    def _remember(self, session: SessionId, source: Source, lines: list[bytes]) -> int:
        """The sequence of the first line in the session's history, or 0 if it has none yet."""
        stream = self._streams.get(session) or self._stream(session)
        first = self._recorder.append(stream, source, lines)
        if self._growth.is_followed:
            self._grown.setdefault(session, first)
        return first

    def apply_once_safe(self, effects: list[fx.Effect], *, flush: bool = True) -> None:
        """As `apply`, where what was remembered may still be refused: nobody is told before, nor is the agent."""
        told: list[tuple[fx.Effect, int]] = []
        grown: dict[SessionId, int] = {}
        for effect in effects:
            first = 0
            if isinstance(effect, fx.Record | fx.Publish):
                lines = effect.lines if isinstance(effect, fx.Publish) else [effect.line]
                first = self._recorder.append(self._stream(effect.session), effect.source, lines)
                grown.setdefault(effect.session, first)
            elif isinstance(effect, fx.Unparsed) and self._complaint(effect) is None:
                continue
            if self._mixed:
                told += [(each, first) for each in self._interpreter.interpret(effect, first)]
            elif not isinstance(effect, fx.Record):
                told.append((effect, first))
        self._store.once_safe(lambda: self._tell_all(told, grown))

    def _tell_all(self, told: list[tuple[fx.Effect, int]], grown: dict[SessionId, int]) -> None:
        if self._growth.is_followed:
            self._tell_growth({session: first for session, first in grown.items() if not self._is_lost(session)})
        for effect, sequence in told:
            if (allowed := self._allowed(effect)) is not None:
                if isinstance(allowed, fx.Publish):
                    self._publish(allowed, sequence)
                else:
                    self._actions[allowed.__class__](allowed)

    def _allowed(self, effect: fx.Effect) -> fx.Effect | None:
        """What may be told of it, though another server may have its session by now: only that, to who waits."""
        session = (
            self._session_of_line(effect.line) if isinstance(effect, fx.Send) else getattr(effect, "session", None)
        )
        error = None if session is None else self._store.lost(self._stream(session))
        if error is None:
            return effect
        if not isinstance(effect, fx.Reply):
            return None
        line = frames.failure(frames.parse(effect.line).key, error, agent=self._agent, session=session)
        return msgspec.structs.replace(effect, line=line)

    def _is_lost(self, session: SessionId) -> bool:
        return self._store.lost(self._stream(session)) is not None

    def _session_of_line(self, line: bytes) -> SessionId | None:
        """Whose session a line to the agent is about, by the agent's name for it. Cancels go through in any case."""
        frame = frames.parse(line)
        if frame.session is None or not frame.is_request:
            return None
        native = frame.session
        return next((each.id for each in self._owner.sessions.values() if each.native == native), None)

    async def turn_ended(self, session: SessionId) -> None:
        """Return when the next turn of the session ends."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turn_waiters.setdefault(session, []).append(waiter)
        await waiter

    def _tell_growth(self, grown: dict[SessionId, int]) -> None:
        for session, first in grown.items():
            self._growth.tell(SessionKey(self._agent, session), first)

    def forget(self, session: SessionId) -> None:
        """The session is deleted."""
        self._streams.pop(session, None)

    def _publish(self, effect: fx.Publish, sequence: int) -> None:
        stream = self._stream(effect.session)
        for connection_id in effect.connections:
            connection = self._connections.get(connection_id)
            if connection is not None:
                if sequence:
                    connection.deliver(effect.session, stream, sequence, effect.lines)
                else:
                    for line in effect.lines:
                        connection.deliver_own(effect.session, line)
                self.events_out += len(effect.lines)
        self.events_in += len(effect.lines)

    def _send(self, effect: fx.Send) -> None:
        self._send_line(effect.line)

    def _deliver(self, effect: fx.Deliver) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.deliver_own(effect.session, effect.line)

    def _tell(self, effect: fx.Tell) -> None:
        for connection_id in effect.connections:
            connection = self._connections.get(connection_id)
            if connection is not None:
                connection.deliver_own_lines(effect.session, effect.lines)
                self.events_out += len(effect.lines)

    def _retell(self, effect: fx.Retell) -> None:
        stream = self._stream(effect.session)
        for connection_id in effect.connections:
            connection = self._connections.get(connection_id)
            if connection is not None:
                connection.deliver_retold(effect.session, stream, effect.entries)
                self.events_out += sum(len(lines) for _, lines in effect.entries)

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
        self._watcher.noticed(self._owner, effect)

    def _replayed(self, effect: fx.Replayed) -> None:
        self._watcher.replayed(SessionKey(self._agent, effect.session))

    def _broadcast(self, effect: fx.Broadcast) -> None:
        for connection in self._owner.audience:
            connection.deliver_own(None, effect.line)

    def _reply(self, effect: fx.Reply) -> None:
        if effect.method == "session/prompt":
            self._watcher.prompt_answered(self._owner, effect)
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.reply(effect.ticket, effect.line, effect.session, effect.method)

    def _taken_up(self, effect: fx.TakenUp) -> None:
        self._watcher.taken_up(self._owner, effect)

    def _announced(self, effect: fx.Announced) -> None:
        self._watcher.announced(self._owner, effect)

    def _resolve(self, effect: fx.Resolve) -> None:
        self._resolve_call(effect.call, effect.line)

    def _observed(self, effect: fx.Observed) -> None:
        self._watcher.observed(self._owner, effect)

    def _wake(self, effect: fx.Wake) -> None:
        self._watcher.wake(SessionKey(self._agent, effect.session))

    def _name_lost(self, effect: fx.NameLost) -> None:
        self._watcher.name_lost(self._owner, effect.session)

    def _serve(self, effect: fx.Serve) -> None:
        self._watcher.serve(self._owner, effect)

    def _unattended(self, effect: fx.Unattended) -> None:
        self._watcher.unattended(self._owner, effect.ask)

    def _complaint(self, effect: fx.Unparsed) -> fx.Unparsed | None:
        """Remember an unparsed line where a turn runs; None if the agent has complained us full already."""
        if not self._complaints.admit(effect.count):
            return None
        for session in effect.sessions:
            line = self._unparsed_line(effect, session)
            self._recorder.append(self._stream(session), "server", [line])
        return effect

    def _unparsed(self, effect: fx.Unparsed) -> None:
        _log.warning(
            "unparsed line agent=%s error=%s sha256=%s lines=%d",
            self._agent,
            effect.error,
            effect.raw_hash,
            effect.count,
        )
        session = effect.sessions[0] if len(effect.sessions) == 1 else None  # else it may be any session's
        self._broadcast(fx.Broadcast(self._unparsed_line(effect, session)))

    def _unparsed_line(self, effect: fx.Unparsed, session: SessionId | None) -> bytes:
        params: dict[str, Any] = {
            "error": effect.error,
            "location": effect.location,
            "raw_hash": effect.raw_hash,
            "agent": self._agent,
            "_meta": {META: {"rawHash": effect.raw_hash}},
        }
        if effect.count > 1:
            params["lines"] = effect.count
        if session is not None:
            params = {"sessionId": session, **params}
        return frames.notification(UNPARSED, params)

    def _tell_skipped(self, count: int) -> None:
        """How many lines were not told of one by one."""
        self._unparsed(fx.Unparsed("more lines that are no JSON-RPC messages", "stdout", "", count=count))

    def _noted(self, effect: fx.Noted) -> None:
        if self._notes.admit(1):
            _log.warning("agent=%s %s", self._agent, effect.message)

    def _log_skipped(self, count: int) -> None:
        _log.warning("agent=%s %d more such notes were left out", self._agent, count)

    def _stream(self, session: SessionId) -> StreamKey:
        stream = self._streams.get(session)
        if stream is None:
            stream = self._streams[session] = SessionKey(self._agent, session).stream
        return stream
