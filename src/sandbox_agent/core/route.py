"""What the relay knows of one session: who is attached, which turn runs, what waits."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.permission_policy import ASK, PermissionPolicy


@dataclass(frozen=True, slots=True)
class Client:
    """A connection as the relay sees it: its name and the capabilities that it claimed."""

    id: ConnectionId
    claims: frozenset[tuple[str, ...]] = frozenset()


@dataclass(slots=True)
class Call:
    """A request on its way to the agent, for a client or the server's own (`is_own`)."""

    id: int
    method: str
    line: bytes
    """The message, already under our id."""
    session: SessionId | None = None
    client: Client | None = None
    ticket: int = 0
    key: bytes = b""
    """The id that the client gave it."""
    is_own: bool = False

    @property
    def connection(self) -> ConnectionId | None:
        return None if self.client is None else self.client.id


@dataclass(slots=True)
class Ask:
    """A request of the agent that waits for somebody's answer."""

    id: int
    agent_key: bytes
    method: str
    session: SessionId | None
    line: bytes
    """The message as clients see it, under our id."""
    asked: set[ConnectionId] = field(default_factory=set)
    is_served: bool = False
    """The host is working on it: clients are not asked."""


@dataclass(slots=True)
class Route:
    session: SessionId
    attached: dict[ConnectionId, Client] = field(default_factory=dict)
    turn: Call | None = None
    queue: deque[Call] = field(default_factory=deque)
    asks: dict[int, Ask] = field(default_factory=dict)
    is_live: bool = True
    """Known to the running agent process. If not, it must be woken before it can take a prompt."""
    is_waking: bool = False
    is_muted: bool = False
    """The agent is replaying what we have already: neither recorded nor delivered."""
    is_settling: bool = False
    """Still muted after the answer to a load, for agents that replay only then. What no replay consists of passes."""
    muted_updates: int = 0
    """How many have been dropped."""
    policy: PermissionPolicy = ASK
    tool_kinds: dict[str, str] = field(default_factory=dict)
    """The kind of each tool call of the turn: some agents name only the call when they ask for permission."""
    connections: tuple[ConnectionId, ...] = ()
    """The keys of `attached`, kept as a tuple for the hot path."""

    def attach(self, client: Client) -> None:
        self.attached[client.id] = client
        self.connections = tuple(self.attached)

    def detach(self, connection: ConnectionId) -> None:
        if self.attached.pop(connection, None) is not None:
            self.connections = tuple(self.attached)
        for ask in self.asks.values():
            ask.asked.discard(connection)

    def able(self, claim: tuple[str, ...] | None) -> list[ConnectionId]:
        """The attached connections that can answer a request that needs `claim`."""
        return [c.id for c in self.attached.values() if claim is None or claim in c.claims]
