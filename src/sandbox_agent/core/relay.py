"""The decisions between the clients and one agent process: ids, routing, queues, cancels. Returns effects, does no IO.

Towards the agent every request gets a small integer of ours; its answer goes back under the id that the client
gave it. The agent's own requests are in `asks`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

import msgspec
from msgspec import UNSET, Raw

from sandbox_agent.core import frames, notices
from sandbox_agent.core.asks import Asks
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.effects import (
    Broadcast,
    Effect,
    Noted,
    Observed,
    Publish,
    Record,
    Replayed,
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
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.session import Call, Change, Client, Phase, Session
from sandbox_agent.errors import MalformedMessage, RequestCancelled, SandboxAgentError, SessionBusy, SessionEnded

CREATING = frozenset({"session/new", "session/fork"})
REPLAYED = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
)
"""What a replay consists of."""
OBSERVED = frozenset({"current_mode_update", "config_option_update", "session_info_update"})
_EARLY_OVERHEAD = 100
"""What an update that is held costs besides its bytes."""
_TOOL_CALL_BYTES = 512
"""A longer name of a tool call and its kind are not remembered: a permission for it goes by the default rule."""
_TOLD_PER_BATCH = 8
"""Lines that are no messages: so many of a batch are told one by one, the others are counted."""


class _NewSession(msgspec.Struct):
    session: str = msgspec.field(name="sessionId")


class _Cancelled(msgspec.Struct):
    request_id: Raw = msgspec.field(name="requestId")


class Relay:
    """Everything that is under way between one agent process and its clients."""

    def __init__(self, ask_ids: Iterator[int], *, budget: Budget, policy: PermissionPolicy) -> None:
        self._sessions: dict[SessionId, Session] = {}
        self.asks = Asks(ask_ids, self._sessions, budget)
        self._calls: dict[int, Call] = {}
        self._call_ids = count(1)
        self._budget = budget
        self._policy = policy
        self._creating = 0
        self._early: dict[SessionId, list[bytes]] = {}
        self._early_bytes = 0

    @property
    def sessions(self) -> Mapping[SessionId, Session]:
        """To be looked at. What happens to them is decided here."""
        return self._sessions

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
        policy: PermissionPolicy | None = None,
    ) -> tuple[int, list[Effect]]:
        """A request of the server's own. Its answer comes as Resolve with the number given here.

        `on_behalf` names the client's request that it serves, so that the client can take it back. `policy` is for a
        session that the call makes."""
        call_id = next(self._call_ids)
        line = frames.request(b"%d" % call_id, method, params)
        client, key = on_behalf or (None, b"")
        call = Call(call_id, method, line, session, client, key=key, is_own=True, policy=policy)
        return call_id, self._send(call)

    def call(self, client: Client, ticket: int, frame: Frame, raw: bytes) -> list[Effect]:
        """Pass a client's request on; a session that it names must be open."""
        call = self._new_call(client, ticket, frame, raw)
        if call.session is not None:
            return [*self._send(call), Record(call.session, call.line, "client")]
        return self._send(call)

    def prompt(
        self, client: Client, ticket: int, frame: Frame, raw: bytes, *, turn_id: str | None = None
    ) -> list[Effect]:
        """Run a prompt now, or after those before it. Attaches the client."""
        call = self._new_call(client, ticket, frame, raw)
        call.turn_id = turn_id
        session = self._sessions[call.session]  # type: ignore[index]  # a prompt names a session that is open
        if session.phase is Phase.ENDED:
            return [_refuse(call, SessionEnded(f"session {session.id!r} has ended", sessionId=session.id))]
        effects = self.attach(client, session.id)
        if session.is_live and session.running is None and not session.queue:
            return effects + self._start_turn(session, call)
        if len(session.queue) >= self._budget.queued_prompts:
            busy = SessionBusy(f"session {session.id!r} has {len(session.queue)} prompts waiting already")
            return [*effects, _refuse(call, busy)]
        session.queue.append(call)
        effects.append(notices.turn_queued(session, call))
        is_first = session.phase is Phase.DORMANT and len(session.queue) == 1
        return [*effects, Wake(session.id)] if is_first else effects

    def notify(self, frame: Frame, raw: bytes) -> list[Effect]:
        """Pass a client's notification on."""
        line = frames.one_line(raw)
        session = self._sessions.get(SessionId(frame.session)) if frame.session is not None else None
        if session is None:
            return [Send(line)]
        effects: list[Effect] = [Record(session.id, line, "client")]
        if frame.method == SESSION_CANCEL:
            return effects + self._cancel_turn(session, line)
        return [Send(line), *effects]

    def cancel_request(self, connection: ConnectionId, raw: bytes) -> list[Effect]:
        """A client takes one of its requests back."""
        try:
            key = bytes(msgspec.json.decode(frames.params_of(raw), type=_Cancelled).request_id)
        except msgspec.MsgspecError as error:
            return [Noted(f"connection {connection} sent a cancel without requestId: {error}")]
        taken_back = RequestCancelled("cancelled while it waited in the session's queue")
        for session in self._sessions.values():
            for call in session.queue:
                if call.connection == connection and call.key == key:
                    session.queue.remove(call)
                    return self._never_run(session, [call], lambda call: frames.failure(call.key, taken_back))
        for call in reversed(self._calls.values()):
            if call.connection == connection and call.key == key:
                return [Send(frames.with_params(raw, {"requestId": call.id}))]
        return []

    def answer(self, connection: ConnectionId, frame: Frame, raw: bytes) -> list[Effect]:
        return self.asks.answer(connection, frame, raw)

    def open(self, session: SessionId, phase: Phase, policy: PermissionPolicy | None = None) -> Session:
        """The session, made in this phase if it is not known here: from the store, or a load that is being tried."""
        return self._sessions.setdefault(session, Session(session, phase, policy or self._policy))

    def attach(self, client: Client, session_id: SessionId) -> list[Effect]:
        session = self._sessions[session_id]
        is_new = client.id not in session.attached
        session.attach(client)
        told = notices.again(client, session) if is_new else []
        return told + self.asks.redeliver(client, session)

    def detach(self, connection: ConnectionId, session_id: SessionId) -> list[Effect]:
        session = self._sessions.get(session_id)
        if session is None or connection not in session.attached:
            return []
        session.detach(connection)
        return self.asks.reassign(session)

    def connection_closed(self, connection: ConnectionId) -> list[Effect]:
        """Its requests go on: their answers are recorded, and nobody hears them."""
        return [effect for session in list(self._sessions) for effect in self.detach(connection, session)]

    def publish(self, session_id: SessionId, line: bytes) -> list[Effect]:
        """A notice of the server's own to everybody attached, kept in the history."""
        session = self._sessions.get(session_id)
        return [Publish(session_id, [line], session.connections if session else (), "server")]

    def wake(self, session_id: SessionId, policy: PermissionPolicy) -> None:
        """The process is about to be asked to take the session up again."""
        session = self._sessions[session_id]
        session.policy = policy
        session.change(Change.WAKE)

    def woken(self, session_id: SessionId) -> list[Effect]:
        """The process holds the session, and nothing more of a replay comes: its prompts run."""
        session = self._sessions[session_id]
        session.change(Change.AWAKE)
        return self._next_turn(session)

    def wake_failed(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """Whoever waits for the session is told why it cannot go on."""
        session = self._sessions[session_id]
        session.change(Change.FAILED)
        return self._refuse_queue(session, error)

    def release(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """The session is closed at the agent: what runs or waits is answered with `error`."""
        return self._stop(self._sessions[session_id], Change.RELEASED, error)

    def end(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """The session is over for good."""
        return self._stop(self._sessions[session_id], Change.END, error)

    def forget(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """The session is deleted: whoever waits is answered with `error`, and nothing is known of it any more."""
        if session_id not in self._sessions:
            return []
        effects = self.end(session_id, error)
        del self._sessions[session_id]
        return effects

    def exited(self, error: SandboxAgentError) -> list[Effect]:
        """The process is gone: answer everybody who waits; sessions become dormant."""
        effects = self.asks.abandon()
        for call in self._calls.values():
            effects += self._unanswered(call, error)
        self._calls.clear()
        self._early.clear()
        self._early_bytes = 0
        self._creating = 0
        for session in self._sessions.values():
            effects += self._refuse_queue(session, error)
            session.change(Change.EXITED)
        return effects

    def from_agent(self, lines: Sequence[bytes | OversizedLine]) -> list[Effect]:
        """Decide about a batch of lines. Neighbouring updates of one session become one Publish."""
        effects: list[Effect] = []
        run: list[bytes] = []
        running: Session | None = None
        sessions = self._sessions
        parse = frames.parse
        odd = 0
        for line in lines:
            if isinstance(line, OversizedLine):
                running = None
                effects.append(self._unparsed(f"a line of {line.size} bytes is over the limit", line.sha256))
                continue
            try:
                frame = parse(line)
            except MalformedMessage as error:
                running = None
                odd += 1
                if odd <= _TOLD_PER_BATCH:
                    effects.append(self._unparsed(str(error), hashlib.sha256(line).hexdigest()))
                continue
            scope = frame.params
            if frame.id is UNSET and scope is not None and scope.session is not None:
                session = sessions.get(scope.session)
                if session is not None and not session.is_muted and frame.method != CANCEL_REQUEST:
                    if session is not running:
                        running, run = session, []
                        effects.append(Publish(session.id, run, session.connections))
                    run.append(line if frames.CARRIAGE_RETURN not in line else frames.one_line(line))
                    if scope.update is not None:
                        if scope.update.kind in OBSERVED:
                            effects.append(Observed(session.id, scope.update.kind, line))
                            running = None
                        elif scope.update.tool_kind is not None and scope.update.tool_call is not None:
                            self._remember_kind(session, scope.update.tool_call, scope.update.tool_kind)
                    continue
            running = None
            effects += self._from_agent_other(frame, frames.one_line(line))
        if odd > _TOLD_PER_BATCH:
            effects.append(self._unparsed("more lines that are no JSON-RPC messages", "", odd - _TOLD_PER_BATCH))
        return effects

    def _unparsed(self, error: str, raw_hash: str, count: int = 1) -> Unparsed:
        running = tuple(session.id for session in self._sessions.values() if session.running is not None)
        return Unparsed(error, "stdout", raw_hash, running, count)

    def _remember_kind(self, session: Session, tool_call: str, kind: str) -> None:
        is_small = len(tool_call) + len(kind) <= _TOOL_CALL_BYTES
        if is_small and (len(session.tool_kinds) < self._budget.tool_calls or tool_call in session.tool_kinds):
            session.tool_kinds[tool_call] = kind

    def expire(self, ask: int) -> list[Effect]:
        return self.asks.expire(ask)

    def served(self, ask: int, member: bytes) -> list[Effect]:
        return self.asks.served(ask, member)

    def _from_agent_other(self, frame: Frame, raw: bytes) -> list[Effect]:
        if frame.is_answer:
            return self._from_agent_answer(frame, raw)
        if frame.is_request:
            asking = self._sessions.get(SessionId(frame.session)) if frame.session is not None else None
            return self.asks.open(frame, raw, asking)
        if frame.method == CANCEL_REQUEST:
            try:
                key = bytes(msgspec.json.decode(frames.params_of(raw), type=_Cancelled).request_id)
            except msgspec.MsgspecError as error:
                return [Noted(f"agent sent a cancel without requestId: {error}")]
            return self.asks.withdraw(key)
        if frame.session is None:
            return [Broadcast(raw)]
        session = self._sessions.get(frame.session)
        return self._muted(session, frame, raw) if session is not None else self._hold(frame.session, raw)

    def _muted(self, session: Session, frame: Frame, raw: bytes) -> list[Effect]:
        """Of a session that is being taken up again: what it replays we have already."""
        update = frame.params.update if frame.params is not None else None
        kind = update.kind if update is not None else None
        if session.phase is Phase.WAKING:
            return []
        if kind in REPLAYED:
            return [Replayed(session.id)]
        effects: list[Effect] = [Publish(session.id, [raw], session.connections)]
        return [*effects, Observed(session.id, kind, raw)] if kind in OBSERVED and kind is not None else effects

    def _hold(self, session: SessionId, raw: bytes) -> list[Effect]:
        """An update of a session without a route: it may come before the answer that names the session."""
        if not self._creating:
            return [Noted(f"agent sent an update for unknown session {session!r}")]
        size = len(raw) + _EARLY_OVERHEAD
        if self._early_bytes + size > self._budget.early_bytes:
            if self._early_bytes <= self._budget.early_bytes:
                self._early_bytes = self._budget.early_bytes + 1  # so that it is said once
                return [Noted(f"over {self._budget.early_bytes} bytes of updates for unannounced sessions: dropped")]
            return []
        self._early_bytes += size
        self._early.setdefault(session, []).append(raw)
        return []

    def _from_agent_answer(self, frame: Frame, raw: bytes) -> list[Effect]:
        try:
            call = self._calls.pop(int(frame.key))
        except (KeyError, ValueError):
            return [Noted(f"agent answered request {frame.key[:40]!r}, which nobody waits for")]
        if call.method in CREATING:
            return self._created(call, frame, raw)
        if call.is_own:
            session = self._sessions.get(call.session) if call.session is not None else None
            if session is None or session.phase is not Phase.WAKING or frame.is_error:
                return [Resolve(call.id, raw)]
            return [Resolve(call.id, raw), *self._taken_up(session, call.method)]
        answer = frames.with_id(raw, call.key, was=frame.key)
        effects: list[Effect] = []
        if call.session is not None:
            effects.append(Record(call.session, raw, "agent"))
        session = self._sessions.get(call.session) if call.session is not None else None
        if session is None or session.running is not call:
            return [*effects, _reply(call, answer)]
        session.running = None
        return [*effects, notices.turn_ended(session, call, raw), _reply(call, answer), *self._next_turn(session)]

    def _taken_up(self, session: Session, method: str) -> list[Effect]:
        """The agent has resumed the session, or loaded it and may be about to replay."""
        if method == "session/load":
            session.change(Change.LOADED)
            return []
        return self.woken(session.id) if method == "session/resume" else []

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
        effects += self._open_created(session, call)
        effects += [Record(session, call.line, "client"), Record(session, raw, "agent")]
        if early := self._early.pop(session, None):
            effects.append(Publish(session, early, ()))
        self._drop_early()
        return [*effects, Resolve(call.id, raw)]

    def _open_created(self, session_id: SessionId, call: Call) -> list[Effect]:
        """A new session. Some agents count anew in each process: then it takes a dormant one's place."""
        old = self._sessions.get(session_id)
        if old is not None and old.is_live:
            return []
        replaced = SessionEnded(f"the agent has given the name {session_id!r} to a new session", sessionId=session_id)
        effects = self.forget(session_id, replaced)
        self._sessions[session_id] = Session(session_id, Phase.LIVE, call.policy or self._policy)
        return effects

    def _drop_early(self) -> None:
        if not self._creating:
            self._early.clear()
            self._early_bytes = 0

    def _start_turn(self, session: Session, call: Call) -> list[Effect]:
        session.running = call
        session.tool_kinds.clear()
        return [*self._send(call), Record(session.id, call.line, "client"), *notices.turn_started(session, call)]

    def _next_turn(self, session: Session) -> list[Effect]:
        if session.queue and session.running is None and session.is_live:
            return self._start_turn(session, session.queue.popleft())
        return []

    def _cancel_turn(self, session: Session, line: bytes) -> list[Effect]:
        """The running turn is cancelled at the agent; prompts that wait behind it end at once."""
        cancelled = {"stopReason": "cancelled"}
        waiting = list(session.queue)
        session.queue.clear()
        effects = self._never_run(session, waiting, lambda call: frames.result(call.key, cancelled))
        if session.is_live:
            effects.append(Send(line))
        return effects + self.asks.cancel_open(session)

    def _stop(self, session: Session, change: Change, error: SandboxAgentError) -> list[Effect]:
        """Nothing of the session goes on: its questions are over, and its requests are answered with `error`."""
        effects = self.asks.drop_all_of(session)
        for call in [call for call in self._calls.values() if call.session == session.id and not call.is_own]:
            del self._calls[call.id]
            effects += self._unanswered(call, error)
        effects += self._refuse_queue(session, error)
        session.change(change)
        return effects

    def _refuse_queue(self, session: Session, error: SandboxAgentError) -> list[Effect]:
        waiting = list(session.queue)
        session.queue.clear()
        return self._never_run(session, waiting, lambda call: frames.failure(call.key, error))

    def _never_run(self, session: Session, calls: Sequence[Call], answer: Callable[[Call], bytes]) -> list[Effect]:
        """Prompts that are answered without the agent having seen them."""
        effects: list[Effect] = []
        for call in calls:
            line = answer(call)
            effects += [notices.turn_ended(session, call, line, has_run=False), _reply(call, line, has_run=False)]
        return effects

    def _unanswered(self, call: Call, error: SandboxAgentError) -> list[Effect]:
        """The agent will not answer: `error` does."""
        if call.is_own:
            return [Resolve(call.id, frames.failure(b"%d" % call.id, error))]
        effects: list[Effect] = []
        line = frames.failure(call.key, error)
        session = self._sessions.get(call.session) if call.session is not None else None
        if call.session is not None:
            effects.append(Record(call.session, frames.failure(b"%d" % call.id, error), "server"))
        if session is not None and session.running is call:
            session.running = None
            effects.append(notices.turn_ended(session, call, line))
        return [*effects, _reply(call, line)]

    def _new_call(self, client: Client, ticket: int, frame: Frame, raw: bytes) -> Call:
        call_id = next(self._call_ids)
        line = frames.with_id(raw, b"%d" % call_id, was=frame.key)
        return Call(call_id, frame.method or "", line, frame.session, client, ticket, frame.key)

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
