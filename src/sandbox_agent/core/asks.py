"""Requests from the agent to clients.

What a person may answer is asked of all who can; the first answer wins and the rest are told. What has effects
(files, terminals) is asked of one client, the one whose turn it is if it can, so that nothing happens twice; with
no such client the host serves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from sandbox_agent.core import frames, notices, speaking
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.effects import Deliver, Effect, Noted, Publish, Record, Send, Serve, Unattended
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.methods import CANCEL_REQUEST, CLAIMED, ELICITATION, HOST_METHODS, PERMISSION, QUESTION
from sandbox_agent.core.notices import SettledBy
from sandbox_agent.core.permission_policy import Decided, timed_out
from sandbox_agent.core.session import Ask, Client, Session
from sandbox_agent.core.sessions import Sessions
from sandbox_agent.core.users import signed
from sandbox_agent.errors import AgentUnsupported, SessionBusy

_CANCELLED: dict[str, object] = {
    PERMISSION: {"outcome": {"outcome": "cancelled"}},
    QUESTION: {"outcome": "cancelled"},
    ELICITATION: {"action": "cancel"},
}
"""What a person may be asked. It waits until somebody comes; this is the answer when the turn is cancelled."""


class Asks:
    """The open requests of one agent process. `ids` is shared by all agents: a client may use several."""

    def __init__(self, ids: Iterator[int], sessions: Sessions, budget: Budget) -> None:
        self._ids = ids
        self._budget = budget
        self._bytes = 0
        self._sessions = sessions
        self._open: dict[int, Ask] = {}
        self._by_agent_key: dict[bytes, Ask] = {}
        self._terminal_owners: dict[tuple[SessionId | None, str], ConnectionId] = {}

    def __len__(self) -> int:
        return len(self._open)

    def has(self, key: bytes) -> bool:
        """Whether this id, as a client knows it, is open."""
        return self._find(key) is not None

    def open(self, frame: Frame, raw: bytes, session: Session | None) -> list[Effect]:
        """Take a request from the agent and pass it to whoever can answer it."""
        method = frame.method or ""
        if not self._has_place(raw):
            refusal = SessionBusy(f"{len(self._open)} requests of this agent wait already ({self._bytes} bytes)")
            return [Send(frames.failure(frame.key, refusal)), Noted(f"agent asked {method}: refused, {refusal.detail}")]
        ask_id = next(self._ids)
        ask = Ask(ask_id, frame.key, method, frame.session, frames.with_id(raw, b"%d" % ask_id))
        if method in HOST_METHODS:
            self._remember(ask, session)
            return self._assign(ask, session, is_recorded=False)
        able = session.able(CLAIMED.get(method)) if session is not None else []
        if session is None:
            return [
                Send(frames.failure(ask.agent_key, AgentUnsupported(f"no client can answer {method!r}"))),
                Noted(f"agent asked {method} for unknown session {frame.session!r}"),
            ]
        if not able and (method not in _CANCELLED or (method == ELICITATION and session.able(None))):
            return [self._send_unanswerable(ask)]
        if method == PERMISSION and (settled := self._settled_by_policy(ask, session)):
            return settled
        ask.asked.update(able)
        self._remember(ask, session)
        effects: list[Effect] = [Publish(session.id, [ask.line], tuple(able))]
        if is_question(ask):
            effects.append(notices.asked(session, ask))
        return effects if able else [*effects, Unattended(ask.id)]

    def reassign(self, session: Session) -> list[Effect]:
        """A client has left: what only it was asked to do goes to another, or to the host."""
        effects: list[Effect] = []
        for ask in session.asks.values():
            if ask.asked or ask.is_served:
                continue
            if ask.method in HOST_METHODS:
                effects += self._assign(ask, session, is_recorded=True)
            else:
                effects.append(Unattended(ask.id))
        return effects

    def answer(self, connection: ConnectionId, frame: Frame, raw: bytes) -> list[Effect]:
        """Take a client's answer. Late ones, and those of connections that were not asked, change nothing."""
        ask = self._find(frame.key)
        if ask is None or connection not in ask.asked:
            return [Noted(f"connection {connection} answered request {frame.key!r}, which is not open for it")]
        if len(ask.asked) > 1 and frame.is_error and _is_method_not_found(frame):
            ask.asked.discard(connection)  # it cannot; another may
            return []
        if ask.method == "terminal/create" and (terminal := _terminal_of(frames.member(raw, "result") or b"{}")):
            self._terminal_owners[ask.session, terminal] = connection
        if ask.method == "terminal/release" and (terminal := _terminal_of(frames.params_of(ask.line))):
            self._terminal_owners.pop((ask.session, terminal), None)
        client = self._client(ask, connection)
        line = speaking.client_answer(ask, raw, from_=client.hears(self._sessions.version), to=self._sessions.version)
        return self.settle(ask, line, "client", "client", client=client)

    def served(self, ask_id: int, result: bytes) -> list[Effect]:
        """Pass on what the host answered: a `result` or `error` member as JSON text."""
        ask = self._open.get(ask_id)
        if ask is None:
            return []
        self._forget(ask)
        return [Send(b'{"jsonrpc":"2.0","id":%b,%b}' % (ask.agent_key, result))]

    def settle(
        self,
        ask: Ask,
        line: bytes,
        source: Literal["client", "server"],
        by: SettledBy,
        client: Client | None = None,
    ) -> list[Effect]:
        """Answer the agent with `line` (under our id), record it, and tell everybody that it is over."""
        session = self._forget(ask)
        effects: list[Effect] = [Send(frames.with_id(line, ask.agent_key))]
        if ask.session is not None:
            effects.append(Record(ask.session, signed(line, client.user) if client is not None else line, source))
        effects += _withdrawals(ask, but=client)
        return effects + _over(session, ask, by, client=client, answer=line)

    def withdraw(self, agent_key: bytes) -> list[Effect]:
        """The agent takes a request back."""
        ask = self._by_agent_key.get(agent_key)
        if ask is None:
            return []
        session = self._forget(ask)
        record = [Record(ask.session, _cancel_line(ask), "agent")] if ask.session is not None else []
        return [*record, *_withdrawals(ask), *_over(session, ask, "agent")]

    def cancel_open(self, session: Session) -> list[Effect]:
        """The turn is being cancelled: nobody need answer its questions any more."""
        effects: list[Effect] = []
        for ask in list(session.asks.values()):
            if ask.method in _CANCELLED:
                line = frames.result(b"%d" % ask.id, _CANCELLED[ask.method])
                effects += self.settle(ask, line, "server", "cancelled")
        return effects

    def redeliver(self, client: Client, session: Session) -> list[Effect]:
        """Everything of the session that still waits, for one who has just come."""
        effects: list[Effect] = []
        for ask in session.asks.values():
            is_able = client.answers(CLAIMED.get(ask.method))
            if is_able and ask.method not in HOST_METHODS and client.id not in ask.asked:
                ask.asked.add(client.id)
                effects.append(Deliver(client.id, ask.line, session.id))
        return effects

    def drop_all_of(self, session: Session) -> list[Effect]:
        """The session is over: the agent is told that nobody will answer."""
        effects: list[Effect] = []
        for ask in list(session.asks.values()):
            effects += [self._send_unanswerable(ask), *self._drop(ask, "cancelled")]
        return effects

    def _drop(self, ask: Ask, by: SettledBy) -> list[Effect]:
        session = self._forget(ask)
        effects: list[Effect] = []
        if ask.session is not None and not ask.is_served:
            effects.append(Record(ask.session, _cancel_line(ask), "server"))
        return [*effects, *_withdrawals(ask), *_over(session, ask, by)]

    def abandon(self) -> list[Effect]:
        """The process is gone: nobody waits for answers any more."""
        effects: list[Effect] = []
        self._terminal_owners.clear()
        for ask in list(self._open.values()):
            effects += self._drop(ask, "exited")
        return effects

    def expire(self, ask_id: int) -> list[Effect]:
        """Nobody has come to answer in time: permissions are rejected, other questions are cancelled."""
        ask = self._open.get(ask_id)
        if ask is None or ask.asked or ask.is_served or ask.method not in _CANCELLED:
            return []
        value = _CANCELLED[ask.method]
        if ask.method == PERMISSION:
            params = msgspec.json.decode(frames.params_of(ask.line))
            value = timed_out(params).result
        return self.settle(ask, frames.result(b"%d" % ask.id, value), "server", "timeout")

    def _settled_by_policy(self, ask: Ask, session: Session) -> list[Effect]:
        """The request and the answer that the session's policy gives, both for the record; nothing if it asks."""
        params = speaking.policy_params(ask, self._sessions.version)
        call = params.get("toolCall") if isinstance(params, dict) else None
        call_id = call.get("toolCallId") if isinstance(call, dict) else None
        decision = session.policy.decide(params, known_kind=session.tool_kinds.get(str(call_id)))
        if not isinstance(decision, Decided):
            return []
        line = frames.result(b"%d" % ask.id, decision.result)
        return [
            Record(session.id, ask.line, "agent"),
            Record(session.id, line, "server"),
            Send(frames.with_id(line, ask.agent_key)),
            notices.settled(session, ask, "policy", answer=line),
        ]

    def _assign(self, ask: Ask, session: Session | None, *, is_recorded: bool) -> list[Effect]:
        params = frames.params_of(ask.line)
        terminal = _terminal_of(params) if ask.method.startswith("terminal/") else None
        able = session.able(CLAIMED[ask.method]) if session is not None else []
        if terminal is not None:
            able = [c for c in able if c == self._terminal_owners.get((ask.session, terminal))]
        if session is None or not able:
            ask.is_served = True
            return [Serve(ask.id, ask.method, ask.session, params)]
        owner = session.running.connection if session.running is not None else None
        chosen = owner if owner in able else able[0]
        ask.asked.add(chosen)
        if is_recorded:
            return [Deliver(chosen, ask.line, session.id)]
        return [Publish(session.id, [ask.line], (chosen,))]

    def _send_unanswerable(self, ask: Ask) -> Send:
        if ask.method == ELICITATION:
            return Send(frames.result(ask.agent_key, _CANCELLED[ELICITATION]))
        return Send(frames.failure(ask.agent_key, AgentUnsupported(f"no client can answer {ask.method!r}")))

    def _has_place(self, raw: bytes) -> bool:
        is_too_large = self._bytes + len(raw) > self._budget.open_request_bytes and bool(self._open)
        return len(self._open) < self._budget.open_requests and not is_too_large

    def _remember(self, ask: Ask, session: Session | None) -> None:
        self._open[ask.id] = ask
        self._bytes += len(ask.line)
        self._by_agent_key[ask.agent_key] = ask
        if session is not None:
            session.asks[ask.id] = ask

    def _forget(self, ask: Ask) -> Session | None:
        """It is not open any more; gives the session that it was of."""
        del self._open[ask.id]
        self._bytes -= len(ask.line)
        if self._by_agent_key.get(ask.agent_key) is ask:
            del self._by_agent_key[ask.agent_key]
        session = self._sessions.get(ask.session)
        if session is not None:
            session.asks.pop(ask.id, None)
        return session

    def _client(self, ask: Ask, connection: ConnectionId) -> Client:
        session = self._sessions.get(ask.session)
        found = session.attached.get(connection) if session is not None else None
        return found or Client(connection)

    def _find(self, key: bytes) -> Ask | None:
        try:
            return self._open.get(int(key.strip(b'"')))
        except ValueError:
            return None


class _Terminal(msgspec.Struct):
    id: str | None = msgspec.field(name="terminalId", default=None)


class _Error(msgspec.Struct):
    code: int = 0


def _terminal_of(params: bytes) -> str | None:
    try:
        return msgspec.json.decode(params, type=_Terminal).id
    except msgspec.MsgspecError:
        return None


def is_question(ask: Ask) -> bool:
    """Whether it is one that a person could answer."""
    return ask.method in _CANCELLED


def _cancel_line(ask: Ask) -> bytes:
    return frames.notification(CANCEL_REQUEST, {"requestId": ask.id})


def _withdrawals(ask: Ask, *, but: Client | None = None) -> list[Effect]:
    line = _cancel_line(ask)
    answered = None if but is None else but.id
    return [Deliver(connection, line, ask.session) for connection in sorted(ask.asked) if connection != answered]


def _over(
    session: Session | None, ask: Ask, by: SettledBy, *, client: Client | None = None, answer: bytes | None = None
) -> list[Effect]:
    """Those attached are told what has become of a question that a person could answer."""
    if session is None or not is_question(ask):
        return []
    return [notices.settled(session, ask, by, client=client, answer=answer)]


def _is_method_not_found(frame: Frame) -> bool:
    try:
        return msgspec.json.decode(frame.error, type=_Error).code == AgentUnsupported.code  # type: ignore[arg-type]
    except msgspec.MsgspecError:
        return False
