"""Connections whose door asks for more than one stream of everything: a stream per session, or answers twice."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.ids import SessionId, StreamKey
from sandbox_agent.errors import AgentExited, TooMany
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.stream import Stream

_ANNOUNCING = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
"""Their answers tell of a session whose stream the client may not read yet."""
_NAMELESS = frozenset({"session/load", "session/resume"})
"""Their answers do not say which session it is; clients look for it there before they read its stream."""
_MAILBOXES = 4096
_SHARE = 8
"""There are many of them, so each holds an eighth of what a connection's stream holds in memory."""
AGENT_EXITED = "_adapter/agent_exited"


class MailboxConnection(Connection):
    """The connection's own stream, and one for each session, made when either side first uses it."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._mailboxes: dict[SessionId, Stream] = {}

    @property
    def streams(self) -> list[Stream]:
        return [self.stream, *self._mailboxes.values()]

    def mailbox(self, session: SessionId) -> Stream:
        """A session's stream, also before anybody knows the session. Raises TooMany."""
        found = self._mailboxes.get(session)
        if found is None:
            if len(self._mailboxes) >= _MAILBOXES:
                raise TooMany(f"this connection has {_MAILBOXES} session streams already")
            found = self._mailboxes[session] = self._open_stream(StreamKey(f"{self.stream.own}:{session}"), _SHARE)
        return found

    def deliver(self, session: SessionId | None, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        self._stream_of(session).append(stream, sequence, lines)

    def deliver_own(self, session: SessionId | None, line: bytes) -> None:
        self._stream_of(session).append_own([line])

    def deliver_own_lines(self, session: SessionId | None, lines: list[bytes]) -> None:
        self._stream_of(session).append_own(lines)

    def reply(self, ticket: int, line: bytes, session: SessionId | None, method: str) -> None:
        if method in _NAMELESS and session is not None:
            line = _naming(line, session)
        self.deliver_own(None if method in _ANNOUNCING else session, line)

    def _stream_of(self, session: SessionId | None) -> Stream:
        if session is None or (session not in self._mailboxes and len(self._mailboxes) >= _MAILBOXES):
            return self.stream
        return self.mailbox(session)


class EchoConnection(Connection):
    """Every answer is on the stream too, and so is the news that the agent has exited."""

    echoes = True

    def reply(self, ticket: int, line: bytes, session: SessionId | None, method: str) -> None:
        self.deliver_own(session, line)
        self._hand_over(ticket, line)

    def agent_exited(self, error: AgentExited) -> None:
        code = error.data.get("exitCode")
        self.deliver_own(None, frames.notification(AGENT_EXITED, {"success": code == 0, "code": code}))


def _naming(answer: bytes, session: SessionId) -> bytes:
    """The answer with `sessionId` in its result, if it has a result that can hold one."""
    result = frames.member(answer, "result")
    if result is None or not result.startswith(b"{"):
        return answer
    named = {**msgspec.json.decode(result, type=dict[str, msgspec.Raw]), "sessionId": session}
    key = frames.member(answer, "id") or b"null"
    return frames.result(key, named)
