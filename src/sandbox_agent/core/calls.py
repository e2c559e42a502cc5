"""The requests that are on their way to one agent process, under ids of ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from sandbox_agent.core import frames, speaking
from sandbox_agent.core.effects import Reply, Send
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.session import Call, Client
from sandbox_agent.core.sessions import Sessions, addressed
from sandbox_agent.errors import SandboxAgentError

CREATING = frozenset({"session/new", "session/fork"})
OPENING = frozenset({"session/load", "session/resume"})


class Calls:
    """What the agent has not answered. Ids are small integers: some agents cannot hold larger ones."""

    def __init__(self, agent: str, sessions: Sessions) -> None:
        self._agent = agent
        self._sessions = sessions
        self._sent: dict[int, Call] = {}
        self._ids = count(1)
        self._creating = 0
        self.newest_id = 0
        """Of those that were sent."""

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def is_creating(self) -> bool:
        """Whether the agent has been asked for a session whose name it has not told."""
        return self._creating > 0

    def is_opening(self, session: SessionId) -> bool:
        """Whether the agent has been asked to take the session up, and has not said what came of it."""
        return any(call.session == session and call.method in OPENING for call in self._sent.values())

    def new(self, client: Client, ticket: int, frame: Frame, raw: bytes) -> Call:
        """A client's request, not sent yet."""
        call_id = next(self._ids)
        key = frame.key
        line = frames.with_id(raw, b"%d" % call_id, was=key)
        return Call(call_id, frame.method or "", line, frame.session, client, ticket, key, version=client.version)

    def new_own(
        self,
        method: str,
        params: object,
        session: SessionId | None,
        on_behalf: tuple[Client, bytes] | None,
        policy: PermissionPolicy | None,
        remembered: object = None,
    ) -> Call:
        """A request of the server's own, not sent yet. `remembered` are its params as the history has them."""
        call_id = next(self._ids)
        line = frames.request(b"%d" % call_id, method, params)
        client, key = on_behalf or (None, b"")
        call = Call(call_id, method, line, session, client, key=key, is_own=True, policy=policy)
        if remembered is not None:
            call.remembered = frames.request(b"%d" % call_id, method, remembered)
        return call

    def send(self, call: Call) -> Send:
        self._sent[call.id] = call
        if call.id > self.newest_id:
            self.newest_id = call.id
        if call.method in CREATING:
            self._creating += 1
        if call.version is not self._sessions.version:
            if call.remembered is not None:
                twin = Call(call.id, call.method, call.remembered, call.session, call.client, version=call.version)
                speaking.speak(twin, self._sessions.version)
                call.remembered = twin.line
            speaking.speak(call, self._sessions.version)
        session = self._sessions.get(call.session)
        if session is None or session.native == session.id:
            return Send(call.line)
        return Send(addressed(call.line, session))

    def answered(self, key: bytes) -> Call | None:
        """The call that the agent answers under this id; None if nobody waits for it."""
        try:
            call = self._sent.pop(int(key))
        except (KeyError, ValueError):
            return None
        if call.method in CREATING:
            self._creating -= 1
        return call

    def newest(self, connection: ConnectionId, key: bytes) -> Call | None:
        """The call that this client sent under `key` and has no answer to."""
        for call in reversed(self._sent.values()):
            if call.connection == connection and call.key == key and not call.is_answered:
                return call
        return None

    def given_up(self, session: SessionId | None = None) -> Iterator[Call]:
        """The calls whose answers nobody waits for any more: those of clients in the session, or all."""
        for call in list(self._sent.values()):
            if session is None or (call.session == session and not call.is_own):
                self.answered(b"%d" % call.id)
                yield call

    def failure(self, call: Call, error: SandboxAgentError) -> bytes:
        """The error as an answer to whoever called."""
        return frames.failure(call.key, error, agent=self._agent, session=call.session)


def reply(call: Call, line: bytes, *, has_run: bool = True) -> Reply:
    if call.client is None:
        raise ValueError(f"{call.method} is the server's own: it has no connection to reply to")
    return Reply(call.client.id, call.ticket, line, call.session, call.method, has_run)


def last_reply(call: Call, line: bytes) -> list[Reply]:
    """The client's answer, unless it has had one when its prompt began."""
    return [] if call.is_answered else [reply(call, line)]
