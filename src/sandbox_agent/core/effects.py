"""What the relay decides. The hub carries these out, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox_agent.core.ids import ConnectionId, SessionId


@dataclass(frozen=True, slots=True)
class Send:
    """Write one line to the agent's stdin."""

    line: bytes


@dataclass(frozen=True, slots=True)
class Publish:
    """Record lines in the session's history and deliver them to `connections`."""

    session: SessionId
    lines: list[bytes]
    connections: tuple[ConnectionId, ...]
    source: Literal["agent", "server"] = "agent"


@dataclass(frozen=True, slots=True)
class Record:
    """Record one line in the session's history; nobody is told."""

    session: SessionId
    line: bytes
    source: Literal["client", "agent", "server"]


@dataclass(frozen=True, slots=True)
class Deliver:
    """An event for one connection alone."""

    connection: ConnectionId
    line: bytes
    session: SessionId | None


@dataclass(frozen=True, slots=True)
class Broadcast:
    """An event for every connection that uses this agent."""

    line: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a client's request: to whoever waits for `ticket`, else onto the stream."""

    connection: ConnectionId
    ticket: int
    line: bytes
    session: SessionId | None
    method: str
    has_run: bool = True
    """The agent has seen the request. False for one that was refused or taken back before."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """The answer to a request of the server's own."""

    call: int
    line: bytes


@dataclass(frozen=True, slots=True)
class Observed:
    """An update that changes what we know of the session: title, mode, config options."""

    session: SessionId
    kind: str
    line: bytes


@dataclass(frozen=True, slots=True)
class Wake:
    """Make a dormant session live again, then call `woken` or `wake_failed`."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class Serve:
    """Serve a request of the agent on this host, then call `served` with the answer."""

    ask: int
    method: str
    session: SessionId | None
    params: bytes


@dataclass(frozen=True, slots=True)
class Unattended:
    """A question waits and nobody is there to answer it: the hub may call `expire` after a while."""

    ask: int


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A line from the agent that is no JSON-RPC message."""

    error: str
    location: str
    raw_hash: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something odd that harms nobody: a log line."""

    message: str


Effect = (
    Send
    | Publish
    | Record
    | Deliver
    | Broadcast
    | Reply
    | Resolve
    | Observed
    | Wake
    | Serve
    | Unattended
    | Unparsed
    | Noted
)
