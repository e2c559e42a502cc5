"""The decisions between the clients and one agent process. Returns effects, does no IO.

What clients send and what becomes of a session is decided here. Requests under way are in `calls`, prompts in `turns`,
the agent's lines in `hearing`, its own requests in `asks`. A session is known by our id everywhere but on the agent's
pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sandbox_agent.core import frames, notices
from sandbox_agent.core.asks import Asks
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.calls import Calls
from sandbox_agent.core.effects import Effect, Noted, Publish, Record, Send
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.hearing import Hearing
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.lines import OversizedLine
from sandbox_agent.core.methods import SESSION_CANCEL
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.session import Change, Client, Phase, Session
from sandbox_agent.core.sessions import Sessions, addressed
from sandbox_agent.core.turns import Turns
from sandbox_agent.core.users import signed
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import SandboxAgentError, SessionEnded


class Relay:
    """Everything that is under way between one agent process and its clients."""

    def __init__(
        self,
        agent: str,
        ask_ids: Iterator[int],
        *,
        budget: Budget,
        policy: PermissionPolicy,
        name_session: Callable[[str], SessionId],
    ) -> None:
        """`name_session` gives the id of a new session from the agent's name for it: one that no session ever had."""
        self._sessions = Sessions(policy)
        self._calls = Calls(agent, self._sessions)
        self.asks = Asks(ask_ids, self._sessions, budget)
        self._turns = Turns(self._sessions, self._calls, self.asks, budget)
        self._hearing = Hearing(self._sessions, self._calls, self.asks, self._turns, budget, name_session)

    @property
    def sessions(self) -> Mapping[SessionId, Session]:
        """To be looked at. What happens to them is decided here."""
        return self._sessions.by_id

    @property
    def mixed(self) -> set[SessionId]:
        """The sessions to which a client of another version than the process's is attached."""
        return self._sessions.mixed

    @property
    def version(self) -> Version:
        """What the process speaks, or spoke last."""
        return self._sessions.version

    @property
    def waiting(self) -> int:
        """Requests that the agent has not answered."""
        return len(self._calls)

    @property
    def is_at_work(self) -> bool:
        """Whether the agent has something to do, as far as it has told us: in version 2 also after it has answered."""
        return bool(self._calls) or any(session.is_at_work for session in self.sessions.values())

    def speak(self, version: Version) -> None:
        """The process that has started speaks this version."""
        self._sessions.speak(version)

    def call_own(
        self,
        method: str,
        params: object,
        session: SessionId | None = None,
        *,
        on_behalf: tuple[Client, bytes] | None = None,
        policy: PermissionPolicy | None = None,
        remembered: object = None,
    ) -> tuple[int, list[Effect]]:
        """A request of the server's own. Its answer comes as Resolve with the number given here.

        `on_behalf` names the client's request that it serves, so that the client can take it back. `policy` is for a
        session that the call makes, and `remembered` what its history has of the params."""
        call = self._calls.new_own(method, params, session, on_behalf, policy, remembered)
        return call.id, [self._calls.send(call)]

    def call(self, client: Client, ticket: int, frame: Frame, raw: bytes) -> list[Effect]:
        """Pass a client's request on; a session that it names must be open."""
        call = self._calls.new(client, ticket, frame, raw)
        sent = self._calls.send(call)
        if call.session is None:
            return [sent]
        line = call.line if client.user is None else signed(call.line, client.user)
        return [sent, Record(call.session, line, "client")]

    def prompt(
        self, client: Client, ticket: int, frame: Frame, raw: bytes, *, turn_id: str | None = None
    ) -> list[Effect]:
        """Run a prompt now, or after those before it. Attaches the client."""
        call = self._calls.new(client, ticket, frame, raw)
        call.turn_id = turn_id
        session = self.sessions[call.session]  # type: ignore[index]  # a prompt names a session that is open
        if refused := self._turns.refusal(session, call):
            return refused
        return self.attach(client, session.id) + self._turns.add(session, call)

    def notify(self, frame: Frame, raw: bytes, *, user: str | None = None) -> list[Effect]:
        """Pass a client's notification on. `user` is the name on its token."""
        line = frames.one_line(raw)
        session = self._sessions.get(frame.session)
        if session is None:
            return [Send(line)]
        record = Record(session.id, signed(line, user), "client")
        if frame.method == SESSION_CANCEL:
            return [record, *self._turns.cancel(session, line)]
        return [Send(addressed(line, session)), record] if self._sessions.is_held(session) else [record]

    def cancel_request(self, connection: ConnectionId, raw: bytes) -> list[Effect]:
        """A client takes one of its requests back."""
        key = frames.cancelled_key(raw)
        if key is None:
            return [Noted(f"connection {connection} sent a cancel without requestId")]
        for session in self.sessions.values():
            cancelled = self._turns.cancel_prompt(session, connection, key)
            if cancelled is not None:
                return cancelled
        call = self._calls.newest(connection, key)
        return [] if call is None else [Send(frames.with_params(raw, {"requestId": call.id}))]

    def take_back(self, session_id: SessionId, prompt_id: str) -> list[Effect]:
        """Anybody may take a prompt out of the queue, whoever sent it. Nothing, if it does not wait there."""
        session = self._sessions.get(session_id)
        queue = session.queue if session is not None else ()
        found = next((call for call in queue if call.prompt_id == prompt_id), None)
        return [] if session is None or found is None else self._turns.unqueue(session, found)

    def answer(self, connection: ConnectionId, frame: Frame, raw: bytes) -> list[Effect]:
        return self.asks.answer(connection, frame, raw)

    def expire(self, ask: int) -> list[Effect]:
        return self.asks.expire(ask)

    def served(self, ask: int, member: bytes) -> list[Effect]:
        return self.asks.served(ask, member)

    def from_agent(self, lines: Sequence[bytes | OversizedLine]) -> list[Effect]:
        """Decide about a batch of lines. Neighbouring updates of one session become one Publish."""
        return self._hearing.hear(lines)

    def open(self, session: SessionId, phase: Phase, policy: PermissionPolicy | None = None) -> Session:
        """The session, made in this phase if it is not known here: from the store, or a load that is being tried."""
        return self._sessions.open(session, phase, policy)

    def holds(self, native: str) -> bool:
        """Whether the process has a session under way that it calls so."""
        return self._sessions.holds(native)

    def attach(self, client: Client, session_id: SessionId) -> list[Effect]:
        session = self.sessions[session_id]
        is_new = client.id not in session.attached
        session.attach(client)
        if client.hears(self.version) is not self.version:
            self.mixed.add(session_id)
        told = notices.again(client, session) if is_new else []
        told += self.asks.redeliver(client, session)
        for child in self._sessions.children(session_id) if is_new else ():
            told += self.attach(client, child.id)
        return told

    def detach(self, connection: ConnectionId, session_id: SessionId) -> list[Effect]:
        session = self._sessions.get(session_id)
        if session is None or connection not in session.attached:
            return []
        session.detach(connection)
        if session_id in self.mixed:
            self._sessions.look_at(session)
        effects = self.asks.reassign(session)
        for child in self._sessions.children(session_id):
            effects += self.detach(connection, child.id)
        return effects

    def connection_closed(self, connection: ConnectionId) -> list[Effect]:
        """Its requests go on: their answers are recorded, and nobody hears them."""
        return [effect for session in list(self.sessions) for effect in self.detach(connection, session)]

    def publish(self, session_id: SessionId, line: bytes) -> list[Effect]:
        """A notice of the server's own to everybody attached, kept in the history."""
        session = self._sessions.get(session_id)
        return [Publish(session_id, [line], session.connections if session else (), "server")]

    def wake(self, session_id: SessionId, policy: PermissionPolicy, native: str) -> None:
        """The process is about to be asked to take up again what it calls `native`. Raises SessionEnded."""
        if self.holds(native):
            raise _given_away(session_id, native)
        session = self.sessions[session_id]
        session.policy = policy
        session.change(Change.WAKE)
        self._sessions.hand_over(session, native)

    def woken(self, session_id: SessionId) -> list[Effect]:
        """The process holds the session, and nothing more of a replay comes: its prompts run."""
        session = self.sessions[session_id]
        session.change(Change.AWAKE)
        session.woken_after = self._calls.newest_id
        return self._turns.next(session)

    def wake_failed(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """Whoever waits for the session is told why it cannot go on.

        Nothing for one that is live: it was made since, and has the id of the one that could not be woken."""
        session = self.sessions[session_id]
        if session.is_live:
            return []
        session.change(Change.FAILED)
        if not self._calls.is_opening(session_id):
            self._sessions.let_go(session)  # no replay comes any more
        return self._turns.refuse_queue(session, error)

    def closing(self, session_id: SessionId) -> None:
        """The process, which holds the session, is about to be asked to let it go: prompts wait from now on."""
        self.sessions[session_id].change(Change.CLOSE)

    def kept(self, session_id: SessionId) -> list[Effect]:
        """The process was asked to let the session go and has not: what waited runs."""
        session = self._sessions.get(session_id)
        if session is None or session.phase is not Phase.CLOSING:
            return []
        session.change(Change.KEPT)
        return self._turns.next(session)

    def release(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """The session is closed at the agent: what runs or waits is answered with `error`."""
        return self._stop(self.sessions[session_id], Change.RELEASED, error)

    def end(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """The session is over for good."""
        return self._stop(self.sessions[session_id], Change.END, error)

    def forget(self, session_id: SessionId, error: SandboxAgentError) -> list[Effect]:
        """The session is deleted: whoever waits is answered with `error`, and nothing is known of it any more."""
        session = self._sessions.get(session_id)
        if session is None:
            return []
        effects = self._stop(session, Change.END, error)
        self._sessions.forget(session)
        return effects

    def exited(self, error: SandboxAgentError) -> list[Effect]:
        """The process is gone: answer everybody who waits; sessions become dormant."""
        effects = self.asks.abandon()
        for call in self._calls.given_up():
            effects += self._turns.give_up(call, error)
        self._hearing.process_gone()
        self._sessions.process_gone()
        for session in self.sessions.values():
            effects += self._turns.interrupt(session, error)
            session.change(Change.EXITED)
        return effects

    def _stop(self, session: Session, change: Change, error: SandboxAgentError) -> list[Effect]:
        """Nothing of the session goes on: its questions are over, and its requests are answered with `error`."""
        effects = self.asks.drop_all_of(session)
        for call in self._calls.given_up(session.id):
            effects += self._turns.give_up(call, error)
        effects += self._turns.interrupt(session, error)
        session.change(change)
        return effects


def _given_away(session: SessionId, native: str) -> SessionEnded:
    return SessionEnded(
        f"session {session!r} can be read only: the agent has given its name {native!r} to a newer one",
        sessionId=session,
    )
