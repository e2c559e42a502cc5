"""What an agent process says: its lines, each to whom it concerns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from sandbox_agent.core import frames, speaking
from sandbox_agent.core.asks import Asks
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.calls import CREATING, OPENING, Calls, reply
from sandbox_agent.core.early import Early
from sandbox_agent.core.echo import Echo
from sandbox_agent.core.effects import (
    Broadcast,
    Effect,
    NameLost,
    Noted,
    Observed,
    Publish,
    Record,
    Replayed,
    Resolve,
    Unparsed,
)
from sandbox_agent.core.frames import CARRIAGE_RETURN, Frame, Update
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.lines import OversizedLine
from sandbox_agent.core.methods import CANCEL_REQUEST
from sandbox_agent.core.session import Call, Change, Phase, Session
from sandbox_agent.core.sessions import Sessions
from sandbox_agent.core.subagents import SUBAGENT, Subagents
from sandbox_agent.core.turns import Turns
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentError, MalformedMessage

REPLAYED = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
    | {"user_message", "agent_message", "agent_thought", "tool_call_content_chunk", "plan_update", "plan_removed"}
    | {"terminal_update", "terminal_output_chunk", "compaction_update", "compaction_summary_chunk", "notice"}
)
"""What a replay consists of, in either version."""
USER_CHUNK = "user_message_chunk"
STATES = frozenset({speaking.STATE_UPDATE, "user_message"})
"""How version 2 tells of its turns."""
OBSERVED = frozenset({"current_mode_update", "config_option_update", "session_info_update", "usage_update"}) | STATES
_NOTABLE = OBSERVED | {USER_CHUNK, SUBAGENT}
"""What is not just passed on."""
_TOOL_CALL_BYTES = 512
"""A longer name of a tool call and its kind are not remembered: a permission for it goes by the default rule."""
_TOLD_PER_BATCH = 8
"""Lines that are no messages: so many of a batch are told one by one, the others are counted."""


class _NewSession(msgspec.Struct):
    session: str = msgspec.field(name="sessionId")


class Hearing:
    """Updates go to their session, answers to their call, questions to `asks`; a new session is known from here on."""

    def __init__(
        self,
        sessions: Sessions,
        calls: Calls,
        asks: Asks,
        turns: Turns,
        budget: Budget,
        name_session: Callable[[str], SessionId],
    ) -> None:
        self._sessions = sessions
        self._calls = calls
        self._asks = asks
        self._turns = turns
        self._early = Early(budget.early_bytes)
        self._tool_calls = budget.tool_calls
        self._name_session = name_session
        self._subagents = Subagents(sessions, name_session)

    def process_gone(self) -> None:
        """What it said of sessions that it never announced concerns nobody."""
        self._early.drop()

    def hear(self, lines: Sequence[bytes | OversizedLine]) -> list[Effect]:
        """Decide about a batch of lines. Neighbouring updates of one session become one Publish."""
        effects: list[Effect] = []
        run: list[bytes] = []
        running: Session | None = None
        held = self._sessions.held
        parse = frames.parse
        name = kind = None  # of the line before: a neighbour is mostly of the same session and kind
        session: Session | None = None
        is_notable = False
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
                update = scope.update
                if scope.session != name:
                    name = scope.session
                    session = held.get(name)
                if update is not None and update.kind != kind:
                    kind = update.kind
                    is_notable = kind in _NOTABLE
                is_passed_on = update is None or not is_notable
                if session is not None and session.is_plain and is_passed_on and frame.method != CANCEL_REQUEST:
                    if session is not running:
                        running, run = session, []
                        effects.append(Publish(session.id, run, session.connections))
                    run.append(line if CARRIAGE_RETURN not in line else frames.one_line(line))
                    if update is not None and update.tool_kind is not None:
                        self._remember_kind(session, update)
                    continue
            running = name = None  # what follows may change which sessions are held
            raw = frames.one_line(line)
            effects += self._answer(frame, raw) if frame.method is None else self._other(frame, raw)
        if odd > _TOLD_PER_BATCH:
            effects.append(self._unparsed("more lines that are no JSON-RPC messages", "", odd - _TOLD_PER_BATCH))
        return effects

    def _observe(self, session: Session, kind: str, line: bytes) -> list[Effect]:
        """Learn from an update what the session is, or how far its turn has come."""
        if kind not in STATES:
            return [Observed(session.id, kind, line)]
        return self._turns.observe(session, line) if self._sessions.version is Version.V2 else []

    def _unparsed(self, error: str, raw_hash: str, count: int = 1) -> Unparsed:
        running = tuple(session.id for session in self._sessions.by_id.values() if session.running is not None)
        return Unparsed(error, "stdout", raw_hash, running, count)

    def _remember_kind(self, session: Session, update: Update) -> None:
        tool_call, kind = update.tool_call, update.tool_kind
        if tool_call is None or kind is None:
            return
        is_small = len(tool_call) + len(kind) <= _TOOL_CALL_BYTES
        if is_small and (len(session.tool_kinds) < self._tool_calls or tool_call in session.tool_kinds):
            session.tool_kinds[tool_call] = kind

    def _other(self, frame: Frame, raw: bytes) -> list[Effect]:
        session = self._sessions.held.get(frame.session) if frame.session is not None else None
        if session is not None and session.native != session.id:
            raw = frames.with_params(raw, {"sessionId": session.id})
            frame = frames.parse(raw)
        if frame.is_request:
            return self._asks.open(frame, raw, session)
        if frame.method == CANCEL_REQUEST:
            key = frames.cancelled_key(raw)
            return [Noted("agent sent a cancel without requestId")] if key is None else self._asks.withdraw(key)
        if frame.session is None:
            return [Broadcast(raw)]
        return self._told(session, frame, raw) if session is not None else self._hold(frame.session, raw)

    def _told(self, session: Session, frame: Frame, raw: bytes) -> list[Effect]:
        """What is not passed on as it is: in the user's name, or of a session that the agent calls otherwise, or is
        taking up again: what it replays we have already."""
        update = frame.params.update if frame.params is not None else None
        kind = update.kind if update is not None else None
        announced: list[Effect] = []
        if kind == SUBAGENT:
            raw, announced = self._subagents.told(session, raw)
        if session.phase is Phase.WAKING:
            return announced
        if session.is_muted and kind in REPLAYED:
            return [Replayed(session.id)]
        if update is not None:
            self._remember_kind(session, update)
        if kind == USER_CHUNK:
            return [self._in_the_users_name(session, raw)]
        effects: list[Effect] = [Publish(session.id, [raw], session.connections), *announced]
        return effects + self._observe(session, kind, raw) if kind in OBSERVED and kind is not None else effects

    def _in_the_users_name(self, session: Session, raw: bytes) -> Publish:
        """An agent may send the prompt back: all but the prompter have been shown it when its turn began.

        In version 2 that is how clients are shown it; those of version 2 have it from us where the agent speaks 1."""
        call = session.running
        connections = session.connections
        if call is not None and call.held is not None:
            call.held.update({"sessionUpdate": USER_CHUNK})
        elif call is not None:
            call.echo = call.echo or Echo(call.line)
            if call.echo.takes(raw):
                own = call.connection if call.version is Version.V1 else None
                connections = tuple(name for name in connections if name == own)
        return Publish(session.id, [raw], connections)

    def _hold(self, session: str, raw: bytes) -> list[Effect]:
        """An update of a session without a route: it may come before the answer that names the session."""
        if not self._calls.is_creating:
            return [Noted(f"agent sent an update for unknown session {session!r}")]
        complaint = self._early.hold(session, raw)
        return [] if complaint is None else [Noted(complaint)]

    def _answer(self, frame: Frame, raw: bytes) -> list[Effect]:
        key = frame.key
        call = self._calls.answered(key)
        if call is None:
            return [Noted(f"agent answered request {key[:40]!r}, which nobody waits for")]
        if call.method in CREATING:
            return self._created(call, frame, raw)
        session = self._sessions.get(call.session)
        if call.is_own:
            return self._answer_own(session, call, frame, raw)
        effects: list[Effect] = [] if call.session is None else [Record(call.session, raw, "agent")]
        if session is not None and session.running is call:
            effects += self._turns.answered(session, call, frame, raw)
        elif not call.is_answered:
            effects.append(reply(call, speaking.answer_to(call, raw, self._sessions.version, was=key)))
        return effects

    def _answer_own(self, session: Session | None, call: Call, frame: Frame, raw: bytes) -> list[Effect]:
        resolved = Resolve(call.id, raw)
        if session is None or frame.is_error:
            return [resolved]
        if call.method in OPENING:
            session.opened = frames.member(raw, "result") or b"null"
        if session.phase is not Phase.WAKING:
            return [resolved]
        if call.method == "session/load":
            session.change(Change.LOADED)  # it may be about to replay
        elif call.method == "session/resume":
            session.change(Change.AWAKE)
            session.woken_after = self._calls.newest_id
            return [resolved, *self._turns.next(session)]
        return [resolved]

    def _created(self, call: Call, frame: Frame, raw: bytes) -> list[Effect]:
        if frame.is_error:
            return self._creation_over(call, raw)
        try:
            native = msgspec.json.decode(frame.result, type=_NewSession).session  # type: ignore[arg-type]
        except msgspec.MsgspecError as error:
            odd = Noted(f"agent answered {call.method} without a sessionId: {error}")
            return [odd, *self._creation_over(call, raw)]
        older = self._sessions.held.get(native)
        if older is not None and (older.is_muted or call.id <= older.woken_after):
            return self._contested(call, frame, older)
        if self._sessions.holds(native):
            doubled = AgentError(f"the agent has named its new session {native!r}, as one that is under way")
            return self._creation_over(call, frames.failure(frame.key, doubled))
        policy = call.policy or self._sessions.default_policy
        session = Session(self._name_session(native), Phase.LIVE, policy, native=native)
        session.opened = frames.member(raw, "result") or b"null"
        self._sessions.add(session)
        effects: list[Effect] = [
            Record(session.id, call.remembered or call.line, "client"),
            Record(session.id, raw, "agent"),
        ]
        effects += self.hear(self._early.take(native))
        if session.id != native:
            made = frames.decode(raw)["result"]
            raw = frames.result(frame.key, {**made, "sessionId": session.id})
        return [*effects, *self._creation_over(call, raw)]

    def _contested(self, call: Call, frame: Frame, older: Session) -> list[Effect]:
        """The process made a session while it was asked to take up an older one of that name: which of the two it
        means by it, and whose replay it sends, nobody can say. So neither is given what it says."""
        self._sessions.bar(older.native)
        self._early.take(older.native)
        doubled = AgentError(
            f"the agent has named its new session {older.native!r}, as one that it was asked to resume; try again"
        )
        return [NameLost(older.id), *self._creation_over(call, frames.failure(frame.key, doubled))]

    def _creation_over(self, call: Call, raw: bytes) -> list[Effect]:
        if not self._calls.is_creating:
            self._early.drop()
        return [Resolve(call.id, raw)]
