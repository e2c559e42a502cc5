"""The decisions between the clients and one agent process: ids, routing, queues, cancels. Returns effects, does no IO.

Towards the agent every request gets a small integer of ours; its answer goes back under the id that the client
gave it. The agent's own requests are in `asks`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import count

import msgspec
from msgspec import UNSET, Raw

from sandbox_agent.core import frames
from sandbox_agent.core.asks import Asks
from sandbox_agent.core.effects import (
    Broadcast,
    Effect,
    Noted,
    Observed,
    Publish,
    Record,
    Reply,
    Resolve,
    Send,
    Unparsed,
    Wake,
)
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.lines import OversizedLine
from sandbox_agent.core.methods import CANCEL_REQUEST, SESSION_CANCEL
from sandbox_agent.core.onlookers import show_end, show_prompt
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.route import Call, Client, Route
from sandbox_agent.errors import MalformedMessage, RequestCancelled, SandboxAgentError, SessionBusy, SessionEnded

CREATING = frozenset({"session/new", "session/fork"})
REPLAYED = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
)
"""What a replay consists of."""
WAKING = frozenset({"session/load", "session/resume"})
OBSERVED = frozenset({"current_mode_update", "config_option_update", "session_info_update"})
_EARLY_LIMIT = 10_000


class _NewSession(msgspec.Struct):
    session: str = msgspec.field(name="sessionId")


class _Cancelled(msgspec.Struct):
    request_id: Raw = msgspec.field(name="requestId")


class Relay:
    """Everything that is under way between one agent process and its clients."""

    def __init__(self, ask_ids: Iterator[int], *, queue_limit: int, policy: PermissionPolicy) -> None:
        self.routes: dict[SessionId, Route] = {}
        self.asks = Asks(ask_ids)
        self._calls: dict[int, Call] = {}
        self._call_ids = count(1)
        self._queue_limit = queue_limit
        self._policy = policy
        self._creating = 0
        self._early: dict[SessionId, list[bytes]] = {}

    @property
    def waiting(self) -> int:
        """Requests that the agent has not answered."""
        return len(self._calls)

    def call_own(
        self,
        method: str,
        params: object,
        session: SessionId | None = None,
        *,
        on_behalf: tuple[Client, bytes] | None = None,
    ) -> tuple[int, list[Effect]]:
        """A request of the server's own. Its answer comes as Resolve with the number given here.

        `on_behalf` names the client's request that it serves, so that the client can take it back."""
        call_id = next(self._call_ids)
        line = frames.request(b"%d" % call_id, method, params)
        client, key = on_behalf or (None, b"")
        call = Call(call_id, method, line, session, client, key=key, is_own=True)
        return call_id, self._send(call)

    def call(self, client: Client, ticket: int, frame: Frame, raw: bytes) -> list[Effect]:
        """Pass a client's request on; a session that it names must have a route."""
        call = self._new_call(client, ticket, frame, raw)
        if call.session is not None:
            return [*self._send(call), Record(call.session, call.line, "client")]
        return self._send(call)

    def prompt(self, client: Client, ticket: int, frame: Frame, raw: bytes) -> list[Effect]:
        """Run a prompt now, or after those before it. Attaches the client."""
        call = self._new_call(client, ticket, frame, raw)
        route = self._route_of(call)
        effects = self.attach(client, route.session)
        if route.is_live and route.turn is None and not route.queue:
            return effects + self._start_turn(route, call)
        if len(route.queue) >= self._queue_limit:
            busy = SessionBusy(f"session {route.session!r} has {len(route.queue)} prompts waiting already")
            return [*effects, _refuse(call, busy)]
        route.queue.append(call)
        if not route.is_live and not route.is_waking:
            route.is_waking = True
            effects.append(Wake(route.session))
        return effects

    def notify(self, frame: Frame, raw: bytes) -> list[Effect]:
        """Pass a client's notification on."""
        line = frames.one_line(raw)
        route = self.routes.get(SessionId(frame.session)) if frame.session is not None else None
        if route is None:
            return [Send(line)]
        effects: list[Effect] = [Record(route.session, line, "client")]
        if frame.method == SESSION_CANCEL:
            return effects + self._cancel_turn(route, line)
        return [Send(line), *effects]

    def cancel_request(self, connection: ConnectionId, raw: bytes) -> list[Effect]:
        """A client takes one of its requests back."""
        try:
            key = bytes(msgspec.json.decode(frames.params_of(raw), type=_Cancelled).request_id)
        except msgspec.MsgspecError as error:
            return [Noted(f"connection {connection} sent a cancel without requestId: {error}")]
        for route in self.routes.values():
            for call in route.queue:
                if call.connection == connection and call.key == key:
                    route.queue.remove(call)
                    return [_refuse(call, RequestCancelled("cancelled while it waited in the session's queue"))]
        for call in reversed(self._calls.values()):
            if call.connection == connection and call.key == key:
                return [Send(frames.with_params(raw, {"requestId": call.id}))]
        return []

    def answer(self, connection: ConnectionId, frame: Frame, raw: bytes) -> list[Effect]:
        return self.asks.answer(connection, frame, raw, self.routes)

    def open_route(self, session: SessionId, *, is_live: bool) -> Route:
        """The route of a session that is known from elsewhere: the store, or a load that is being tried."""
        return self.routes.setdefault(session, Route(session, is_live=is_live, policy=self._policy))

    def attach(self, client: Client, session: SessionId) -> list[Effect]:
        route = self.routes[session]
        route.attach(client)
        return self.asks.redeliver(client, route)

    def detach(self, connection: ConnectionId, session: SessionId) -> list[Effect]:
        route = self.routes.get(session)
        if route is None or connection not in route.attached:
            return []
        route.detach(connection)
        return self.asks.reassign(route)

    def connection_closed(self, connection: ConnectionId) -> list[Effect]:
        """Its requests go on: their answers are recorded, and nobody hears them."""
        return [effect for session in list(self.routes) for effect in self.detach(connection, session)]

    def publish(self, session: SessionId, line: bytes) -> list[Effect]:
        """A notice of the server's own to everybody attached."""
        route = self.routes.get(session)
        return [Publish(session, [line], route.connections if route else (), "server")]

    def woken(self, session: SessionId) -> list[Effect]:
        route = self.routes[session]
        route.is_live, route.is_waking = True, False
        route.is_muted = route.is_settling = False
        return self._next_turn(route)

    def wake_failed(self, session: SessionId, error: SandboxAgentError) -> list[Effect]:
        route = self.routes[session]
        route.is_waking = route.is_muted = route.is_settling = False
        refusals: list[Effect] = [_refuse(call, error) for call in route.queue]
        route.queue.clear()
        return refusals

    def exited(self, error: SandboxAgentError) -> list[Effect]:
        """The process is gone: answer everybody who waits; sessions become dormant."""
        effects = self.asks.abandon(self.routes)
        for call in self._calls.values():
            if call.is_own:
                effects.append(Resolve(call.id, frames.failure(b"%d" % call.id, error)))
                continue
            if call.session is not None:
                effects.append(Record(call.session, frames.failure(b"%d" % call.id, error), "server"))
            effects.append(_reply(call, frames.failure(call.key, error)))
            route = self.routes.get(call.session) if call.session is not None else None
            if route is not None and route.turn is call:
                effects += show_end(route, call, frames.failure(call.key, error))
        self._calls.clear()
        self._early.clear()
        self._creating = 0
        for route in self.routes.values():
            effects += [_refuse(call, error) for call in route.queue]
            route.queue.clear()
            route.turn = None
            route.is_live = route.is_waking = route.is_muted = route.is_settling = False
        return effects

    def from_agent(self, lines: Sequence[bytes | OversizedLine]) -> list[Effect]:
        """Decide about a batch of lines. Neighbouring updates of one session become one Publish."""
        effects: list[Effect] = []
        run: list[bytes] = []
        running: Route | None = None
        routes = self.routes
        parse = frames.parse
        for line in lines:
            if isinstance(line, OversizedLine):
                running = None
                effects.append(Unparsed(f"a line of {line.size} bytes is over the limit", "stdout", line.sha256))
                continue
            try:
                frame = parse(line)
            except MalformedMessage as error:
                running = None
                effects.append(Unparsed(str(error), "stdout", hashlib.sha256(line).hexdigest()))
                continue
            scope = frame.params
            if frame.id is UNSET and scope is not None and scope.session is not None:
                route = routes.get(scope.session)
                if route is not None and not route.is_muted and frame.method != CANCEL_REQUEST:
                    if route is not running:
                        running, run = route, []
                        effects.append(Publish(route.session, run, route.connections))
                    run.append(line if frames.CARRIAGE_RETURN not in line else frames.one_line(line))
                    if scope.update is not None:
                        if scope.update.kind in OBSERVED:
                            effects.append(Observed(route.session, scope.update.kind, line))
                            running = None
                        elif scope.update.tool_kind is not None and scope.update.tool_call is not None:
                            route.tool_kinds[scope.update.tool_call] = scope.update.tool_kind
                    continue
            running = None
            effects += self._from_agent_other(frame, frames.one_line(line))
        return effects

    def expire(self, ask: int) -> list[Effect]:
        return self.asks.expire(ask, self.routes)

    def served(self, ask: int, member: bytes) -> list[Effect]:
        return self.asks.served(ask, member, self.routes)

    def _from_agent_other(self, frame: Frame, raw: bytes) -> list[Effect]:
        if frame.is_answer:
            return self._from_agent_answer(frame, raw)
        if frame.is_request:
            route = self.routes.get(SessionId(frame.session)) if frame.session is not None else None
            return self.asks.open(frame, raw, route)
        if frame.method == CANCEL_REQUEST:
            try:
                key = bytes(msgspec.json.decode(frames.params_of(raw), type=_Cancelled).request_id)
            except msgspec.MsgspecError as error:
                return [Noted(f"agent sent a cancel without requestId: {error}")]
            return self.asks.withdraw(key, self.routes)
        if frame.session is None:
            return [Broadcast(raw)]
        route = self.routes.get(frame.session)
        return self._muted(route, frame, raw) if route is not None else self._hold(frame.session, raw)

    def _muted(self, route: Route, frame: Frame, raw: bytes) -> list[Effect]:
        update = frame.params.update if frame.params is not None else None
        kind = update.kind if update is not None else None
        if not route.is_settling or kind in REPLAYED:  # we have it already
            route.muted_updates += 1
            return []
        effects: list[Effect] = [Publish(route.session, [raw], route.connections)]
        return [*effects, Observed(route.session, kind, raw)] if kind in OBSERVED and kind is not None else effects

    def _hold(self, session: SessionId, raw: bytes) -> list[Effect]:
        """An update of a session without a route: it may come before the answer that names the session."""
        if not self._creating:
            return [Noted(f"agent sent an update for unknown session {session!r}")]
        held = self._early.setdefault(session, [])
        if len(held) >= _EARLY_LIMIT:
            return [Noted(f"more than {_EARLY_LIMIT} updates before session {session!r} was announced: dropped")]
        held.append(raw)
        return []

    def _from_agent_answer(self, frame: Frame, raw: bytes) -> list[Effect]:
        try:
            call = self._calls.pop(int(frame.key))
        except (KeyError, ValueError):
            return [Noted(f"agent answered request {frame.key[:40]!r}, which nobody waits for")]
        if call.method in CREATING:
            return self._created(call, frame, raw)
        if call.is_own:
            route = self.routes.get(call.session) if call.session is not None else None
            if call.method in WAKING and route is not None and route.is_muted:
                route.is_muted = route.is_settling = call.method == "session/load"
            return [Resolve(call.id, raw)]
        answer = frames.with_id(raw, call.key, was=frame.key)
        effects: list[Effect] = []
        if call.session is not None:
            effects.append(Record(call.session, raw, "agent"))
        if call.method == "session/prompt" and call.session is not None:
            route = self.routes.get(call.session)
            effects.append(_reply(call, answer))
            if route is not None and route.turn is call:
                effects += show_end(route, call, raw)
                route.turn = None
                effects += self._next_turn(route)
            return effects
        return [*effects, _reply(call, answer)]

    def _created(self, call: Call, frame: Frame, raw: bytes) -> list[Effect]:
        self._creating -= 1
        effects: list[Effect] = []
        session: SessionId | None = None
        if not frame.is_error:
            try:
                session = SessionId(msgspec.json.decode(frame.result, type=_NewSession).session)  # type: ignore[arg-type]
            except msgspec.MsgspecError as error:
                effects.append(Noted(f"agent answered {call.method} without a sessionId: {error}"))
        if session is None:
            self._drop_early()
            return [*effects, Resolve(call.id, raw)]
        effects += self._open_created(session)
        effects += [Record(session, call.line, "client"), Record(session, raw, "agent")]
        if early := self._early.pop(session, None):
            effects.append(Publish(session, early, ()))
        self._drop_early()
        return [*effects, Resolve(call.id, raw)]

    def _open_created(self, session: SessionId) -> list[Effect]:
        """A route for a new session. Some agents count anew in each process: then it takes a dormant one's place."""
        old = self.routes.get(session)
        if old is not None and old.is_live:
            return []
        self.routes[session] = Route(session, policy=self._policy)
        replaced = SessionEnded(f"the agent has given the name {session!r} to a new session", sessionId=session)
        return [_refuse(call, replaced) for call in old.queue] if old is not None else []

    def _drop_early(self) -> None:
        if not self._creating:
            self._early.clear()

    def _start_turn(self, route: Route, call: Call) -> list[Effect]:
        route.turn = call
        route.tool_kinds.clear()
        return [*self._send(call), Record(route.session, call.line, "client"), *show_prompt(route, call)]

    def _next_turn(self, route: Route) -> list[Effect]:
        if route.queue and route.turn is None:
            return self._start_turn(route, route.queue.popleft())
        return []

    def _cancel_turn(self, route: Route, line: bytes) -> list[Effect]:
        """The running turn is cancelled at the agent; prompts that wait behind it end at once."""
        cancelled = {"stopReason": "cancelled"}
        effects: list[Effect] = [
            _reply(call, frames.result(call.key, cancelled), has_run=False) for call in route.queue
        ]
        route.queue.clear()
        if route.is_live:
            effects.append(Send(line))
        return effects + self.asks.cancel_open(route, self.routes)

    def _new_call(self, client: Client, ticket: int, frame: Frame, raw: bytes) -> Call:
        call_id = next(self._call_ids)
        line = frames.with_id(raw, b"%d" % call_id, was=frame.key)
        return Call(call_id, frame.method or "", line, frame.session, client, ticket, frame.key)

    def _route_of(self, call: Call) -> Route:
        if call.session is None:
            raise KeyError(call.method)
        return self.routes[call.session]

    def _send(self, call: Call) -> list[Effect]:
        self._calls[call.id] = call
        if call.method in CREATING:
            self._creating += 1
        return [Send(call.line)]


def _reply(call: Call, line: bytes, *, has_run: bool = True) -> Reply:
    if call.client is None:
        raise ValueError(f"{call.method} is the server's own: it has no connection to reply to")
    return Reply(call.client.id, call.ticket, line, call.session, call.method, has_run)


def _refuse(call: Call, error: SandboxAgentError) -> Reply:
    return _reply(call, frames.failure(call.key, error), has_run=False)
