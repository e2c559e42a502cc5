"""The turns of a session: one prompt runs at a time, the others wait in order, and each is answered once.

An agent of version 1 answers a prompt when its turn is over. One of version 2 answers when it begins, and tells of the
end by updates; clients of either version hear of it in their own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from sandbox_agent.core import frames, notices, speaking
from sandbox_agent.core.asks import Asks
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.calls import Calls, last_reply, reply
from sandbox_agent.core.effects import Effect, Publish, Record, Resolve, Send, TakenUp, Wake
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import ConnectionId
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import SESSION_CANCEL
from sandbox_agent.core.session import IDLE, Call, Phase, Session
from sandbox_agent.core.sessions import Sessions, addressed
from sandbox_agent.core.users import signed
from sandbox_agent.core.versions import HeldPrompt, Version
from sandbox_agent.errors import RequestCancelled, SandboxAgentError, SessionBusy, SessionEnded


class Turns:
    def __init__(self, sessions: Sessions, calls: Calls, asks: Asks, budget: Budget) -> None:
        self._sessions = sessions
        self._calls = calls
        self._asks = asks
        self._budget = budget

    def refusal(self, session: Session, call: Call) -> list[Effect]:
        """The answer to a prompt for a session that takes none any more."""
        if session.phase is not Phase.ENDED:
            return []
        return [self._refuse(call, SessionEnded(f"session {session.id!r} has ended", sessionId=session.id))]

    def add(self, session: Session, call: Call) -> list[Effect]:
        """Run a prompt now, or after those before it."""
        if session.can_begin and session.running is None and not session.queue:
            return self._start(session, call)
        if len(session.queue) >= self._budget.queued_prompts:
            busy = SessionBusy(f"session {session.id!r} has {len(session.queue)} prompts waiting already")
            return [self._refuse(call, busy)]
        session.queue.append(call)
        queued = notices.turn_queued(session, call)
        is_first = session.phase is Phase.DORMANT and len(session.queue) == 1
        return [queued, Wake(session.id)] if is_first else [queued]

    def next(self, session: Session) -> list[Effect]:
        if session.queue and session.running is None and session.can_begin:
            return self._start(session, session.queue.popleft())
        return []

    def answered(self, session: Session, call: Call, frame: Frame, raw: bytes) -> list[Effect]:
        """The agent has answered the prompt that runs: it is over, or only begun."""
        if call.held is not None and not frame.is_error:
            return self._begun(session, call, raw)
        return self._over(session, call, raw, frames.with_id(raw, call.key, was=frame.key))

    def observe(self, session: Session, line: bytes) -> list[Effect]:
        """An agent of version 2 tells what the session does."""
        update = speaking.update_in(line)
        if update.get("sessionUpdate") == speaking.STATE_UPDATE:
            session.activity = speaking.activity(line, update) or session.activity
        call = session.running
        ended = call.held.update(update) if call is not None and call.held is not None else None
        return [] if call is None or ended is None else self._ended(session, call, ended)

    def cancel(self, session: Session, line: bytes) -> list[Effect]:
        """The running turn is cancelled at the agent by `line`; prompts that wait behind it end at once."""
        taken_back = RequestCancelled("the session's turns were cancelled while it waited in the queue")

        def cancelled(call: Call) -> bytes:
            if call.version is Version.V1:
                return frames.result(call.key, {"stopReason": "cancelled"})
            return frames.failure(call.key, taken_back)

        effects = self._never_run(session, cancelled)
        if session.is_live:
            effects.append(Send(addressed(line, session)))
        return effects + self._asks.cancel_open(session)

    def cancel_prompt(self, session: Session, connection: ConnectionId, key: bytes) -> list[Effect] | None:
        """A client takes its prompt back; None if the session has no such prompt, or the agent is to be told."""
        for call in session.queue:
            if call.connection == connection and call.key == key:
                return self.unqueue(session, call)
        running = session.running
        if running is None or not running.is_taken_up or (running.connection, running.key) != (connection, key):
            return None
        if running.is_answered:
            return []
        line = frames.notification(SESSION_CANCEL, {"sessionId": session.id})
        record = Record(session.id, signed(line, running.user), "client")
        return [Send(addressed(line, session)), record, *self._asks.cancel_open(session)]

    def unqueue(self, session: Session, call: Call) -> list[Effect]:
        """Answer a prompt that waits, without the agent ever seeing it."""
        taken_back = RequestCancelled("cancelled while it waited in the session's queue")
        return self._never_run(session, lambda call: self._calls.failure(call, taken_back), [call])

    def refuse_queue(self, session: Session, error: SandboxAgentError) -> list[Effect]:
        return self._never_run(session, lambda call: self._calls.failure(call, error))

    def interrupt(self, session: Session, error: SandboxAgentError) -> list[Effect]:
        """The agent will not say how what it does in the session ends: we do."""
        effects: list[Effect] = []
        is_working = session.activity.get("state") != "idle"
        if session.running is not None and session.running.is_taken_up:
            effects += self.give_up(session.running, error)
            is_working = True  # whoever has been told that it began is told that it is over
        if is_working or session.activity.get("background"):
            line = speaking.interrupted(session, error if is_working else None)
            session.activity = dict(IDLE)
            effects.append(Publish(session.id, [line], session.connections, "server"))
        return effects + self.refuse_queue(session, error)

    def give_up(self, call: Call, error: SandboxAgentError) -> list[Effect]:
        """The agent will not answer: `error` does."""
        if call.is_own:
            return [Resolve(call.id, frames.failure(b"%d" % call.id, error))]
        effects: list[Effect] = []
        line = self._calls.failure(call, error)
        session = self._sessions.get(call.session)
        if call.session is not None and not call.is_taken_up:
            effects.append(Record(call.session, frames.with_id(line, b"%d" % call.id, was=call.key), "server"))
        if session is not None and session.running is call:
            session.running = None
            effects.append(notices.turn_ended(session, call, line))
        return [*effects, *last_reply(call, line)]

    def _start(self, session: Session, call: Call) -> list[Effect]:
        session.running = call
        session.tool_kinds.clear()
        agent = self._sessions.version
        if agent is Version.V2:
            call.held = HeldPrompt(is_working=session.activity.get("state") != "idle")
        elif session.id in self._sessions.mixed or call.turn_id is not None:
            call.message_id = _new_message_id()
        sent = self._calls.send(call)
        effects = [
            sent,
            Record(session.id, signed(call.line, call.user), "client"),
            *notices.turn_started(session, call),
        ]
        if call.turn_id is not None and agent is Version.V1:
            effects.append(TakenUp(session.id, call.turn_id, call.message_id))
        if call.version is Version.V2 and agent is Version.V1:
            effects.append(reply(call, speaking.begun(call)))
            call.is_answered = True
        return effects

    def _begun(self, session: Session, call: Call, raw: bytes) -> list[Effect]:
        """An agent of version 2 has begun with a prompt. Clients of version 1 hear of it when it is over."""
        call.is_taken_up = True
        effects: list[Effect] = []
        said = read_json(frames.member(raw, "result") or b"null")
        ended = call.held.acknowledged(said) if call.held is not None else None
        call.message_id = (call.held.message_id if call.held is not None else None) or _new_message_id()
        if call.turn_id is not None:
            effects.append(TakenUp(session.id, call.turn_id, call.message_id))
        if call.version is Version.V2:
            effects.append(reply(call, speaking.acknowledgement(call, raw)))
            call.is_answered = True
        if ended is None:
            return effects
        if ended.get("result") is said:  # it told its end as version 1 does: those of version 2 wait for a state
            session.activity = dict(IDLE)
            effects.append(Publish(session.id, [speaking.idle(session.id, ended)], session.connections, "server"))
        return effects + self._ended(session, call, ended)

    def _ended(self, session: Session, call: Call, outcome: dict[str, Any]) -> list[Effect]:
        """An agent of version 2 has said how the turn ended."""
        line = speaking.ended(call, outcome)
        return self._over(session, call, line, line)

    def _over(self, session: Session, call: Call, said: bytes, answer: bytes) -> list[Effect]:
        session.running = None
        return [notices.turn_ended(session, call, said), *last_reply(call, answer), *self.next(session)]

    def _never_run(
        self, session: Session, answer: Callable[[Call], bytes], calls: Sequence[Call] | None = None
    ) -> list[Effect]:
        """These prompts, or all that wait, are answered without the agent having seen them."""
        effects: list[Effect] = []
        for call in list(session.queue) if calls is None else calls:
            session.queue.remove(call)
            line = answer(call)
            effects += [notices.turn_ended(session, call, line, has_run=False), reply(call, line, has_run=False)]
        return effects

    def _refuse(self, call: Call, error: SandboxAgentError) -> Effect:
        return reply(call, self._calls.failure(call, error), has_run=False)


def _new_message_id() -> str:
    return f"msg_{uuid4().hex}"
