"""What the relay decides. The hub carries these out, in order."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, Struct

from sandbox_agent.core.ids import ConnectionId, SessionId


class Send(Struct, frozen=True):
    """Write one line to the agent's stdin."""

    line: bytes


class Publish(Struct, frozen=True):
    """Record lines in the session's history and deliver them to `connections`."""

    session: SessionId
    lines: list[bytes]
    connections: tuple[ConnectionId, ...]
    source: Literal["agent", "server"] = "agent"


class Record(Struct, frozen=True):
    """Record one line in the session's history; nobody is told."""

    session: SessionId
    line: bytes
    source: Literal["client", "agent", "server"]


class Deliver(Struct, frozen=True):
    """An event for one connection alone."""

    connection: ConnectionId
    line: bytes
    session: SessionId | None


class Tell(Struct, frozen=True):
    """Events for some connections alone, of what the other version has notices for."""

    session: SessionId
    lines: list[bytes]
    connections: tuple[ConnectionId, ...]


Retold = list[tuple[int, list[bytes]]]
"""Entries of a history in the words of another version: the sequence of each (0 if it has none), and all its lines."""


class Retell(Struct, frozen=True):
    """Deliver what stands in the session's history to connections that read another version."""

    session: SessionId
    entries: Retold
    connections: tuple[ConnectionId, ...]


class Notice(Struct, frozen=True):
    """Something of ours that happened in a session: for those attached, and for whoever follows the feed."""

    session: SessionId
    name: Literal["turn_queued", "turn_started", "turn_ended", "asked", "settled"]
    params: dict[str, Any]
    connections: tuple[ConnectionId, ...]
    message_id: str = ""
    """Of a turn that starts, where somebody wants to know: the name of its prompt as a message, and what it says."""
    prompt: list[Raw] = []


class Broadcast(Struct, frozen=True):
    """An event for every connection that uses this agent."""

    line: bytes


class Reply(Struct, frozen=True):
    """The answer to a client's request: to whoever waits for `ticket`, else onto the stream."""

    connection: ConnectionId
    ticket: int
    line: bytes
    session: SessionId | None
    method: str
    has_run: bool = True
    """The agent has seen the request. False for one that was refused or taken back before."""


class Announced(Struct, frozen=True):
    """The agent has made a session by itself, for a helper of its own in `parent`."""

    session: SessionId
    parent: SessionId
    native: str
    """What the agent calls it."""
    title: str | None
    cwd: str | None


class TakenUp(Struct, frozen=True):
    """The agent has a prompt that its client gave a name (`turn_id`), as the message that is called `message_id`."""

    session: SessionId
    turn_id: str
    message_id: str


class Resolve(Struct, frozen=True):
    """The answer to a request of the server's own."""

    call: int
    line: bytes


class Observed(Struct, frozen=True):
    """An update that changes what we know of the session: title, mode, config options."""

    session: SessionId
    kind: str
    line: bytes


class Wake(Struct, frozen=True):
    """Make a dormant session live again, then call `woken` or `wake_failed`."""

    session: SessionId


class NameLost(Struct, frozen=True):
    """The process may mean a newer session by the name of this one: it has to end, and is never woken again."""

    session: SessionId


class Replayed(Struct, frozen=True):
    """The agent goes on replaying a session that settles: it is not `settled` yet."""

    session: SessionId


class Serve(Struct, frozen=True):
    """Serve a request of the agent on this host, then call `served` with the answer."""

    ask: int
    method: str
    session: SessionId | None
    params: bytes


class Unattended(Struct, frozen=True):
    """A question waits and nobody is there to answer it: the hub may call `expire` after a while."""

    ask: int


class Unparsed(Struct, frozen=True):
    """A line from the agent that is no JSON-RPC message."""

    error: str
    location: str
    raw_hash: str
    sessions: tuple[SessionId, ...] = ()
    """In which a turn was running: it is in their history too."""
    count: int = 1
    """How many such lines it stands for."""


class Noted(Struct, frozen=True):
    """Something odd that harms nobody: a log line."""

    message: str


Effect = (
    Send
    | Publish
    | Record
    | Deliver
    | Tell
    | Retell
    | Notice
    | Broadcast
    | Reply
    | TakenUp
    | Announced
    | Resolve
    | Observed
    | Wake
    | NameLost
    | Replayed
    | Serve
    | Unattended
    | Unparsed
    | Noted
)
