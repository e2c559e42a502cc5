"""Names of things, so that an id says of what."""

from typing import NamedTuple, NewType

AgentId = NewType("AgentId", str)
ConnectionId = NewType("ConnectionId", str)
SessionId = NewType("SessionId", str)
EventId = NewType("EventId", int)
StreamKey = NewType("StreamKey", str)
"""Names one append-only record in the store: a session's history or a connection's own events."""


class SessionKey(NamedTuple):
    """Session ids are unique within their agent only."""

    agent: AgentId
    session: SessionId

    @property
    def stream(self) -> StreamKey:
        return StreamKey(f"session:{self.agent}:{self.session}")


CONNECTION_PREFIX = "connection:"


def connection_stream(connection: ConnectionId) -> StreamKey:
    return StreamKey(f"{CONNECTION_PREFIX}{connection}")


class SessionName(NamedTuple):
    """How somebody names a session: by id or alias, at an agent or at any; `prefer` is taken where several have it."""

    name: str
    agent: AgentId | None = None
    prefer: AgentId | None = None
