"""The life of a session as a table, and what is under way in it: who is attached, its turns, its open questions.

Nobody sets a session's phase: it moves by changes, and a change that the table does not know is a bug.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.permission_policy import ASK, PermissionPolicy


class Phase(enum.Enum):
    DORMANT = "no process holds it; the next prompt wakes it"
    WAKING = "the process takes it up again: what it replays meanwhile we have already"
    SETTLING = "the load was answered: a late replay is still passed over, everything else is told"
    LIVE = "the running process holds it"
    ENDED = "over for good; it can be read"


class Change(enum.Enum):
    WAKE = "the process is asked to take it up"
    LOADED = "a load was answered; some agents replay only then"
    AWAKE = "the process holds it"
    FAILED = "it could not be woken"
    RELEASED = "closed at the agent; it can be woken again"
    EXITED = "the process is gone"
    END = "ended for good"


_MUTED = (Phase.WAKING, Phase.SETTLING)
_NOT_ENDED = (Phase.DORMANT, Phase.WAKING, Phase.SETTLING, Phase.LIVE)

TRANSITIONS: dict[tuple[Phase, Change], Phase] = {
    (Phase.DORMANT, Change.WAKE): Phase.WAKING,
    (Phase.WAKING, Change.LOADED): Phase.SETTLING,
    (Phase.WAKING, Change.AWAKE): Phase.LIVE,
    (Phase.SETTLING, Change.AWAKE): Phase.LIVE,
    (Phase.WAKING, Change.FAILED): Phase.DORMANT,
    (Phase.SETTLING, Change.FAILED): Phase.DORMANT,
    (Phase.DORMANT, Change.FAILED): Phase.DORMANT,
    **{(phase, Change.RELEASED): Phase.DORMANT for phase in _NOT_ENDED},
    **{(phase, Change.EXITED): Phase.DORMANT for phase in _NOT_ENDED},
    **{(phase, Change.END): Phase.ENDED for phase in Phase},
    **{(Phase.ENDED, change): Phase.ENDED for change in Change if change is not Change.WAKE},
}


@dataclass(frozen=True, slots=True)
class Client:
    """A connection as the relay sees it: its name, the capabilities that it claimed, and what it says it is."""

    id: ConnectionId
    claims: frozenset[tuple[str, ...]] = frozenset()
    info: dict[str, Any] = field(default_factory=dict, compare=False)


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
    turn_id: str | None = None
    """The name that the client gave to a prompt, so that it runs once however often it is sent."""
    policy: PermissionPolicy | None = None
    """For a call that makes a session: who answers its permissions from the first one on."""

    @property
    def connection(self) -> ConnectionId | None:
        return None if self.client is None else self.client.id

    @property
    def prompt_id(self) -> str:
        """How a prompt is called towards clients."""
        return f"prompt_{self.id}"


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
class Session:
    id: SessionId
    phase: Phase = Phase.LIVE
    policy: PermissionPolicy = ASK
    attached: dict[ConnectionId, Client] = field(default_factory=dict)
    running: Call | None = None
    """The prompt whose turn it is."""
    queue: deque[Call] = field(default_factory=deque)
    """The prompts after it."""
    asks: dict[int, Ask] = field(default_factory=dict)
    tool_kinds: dict[str, str] = field(default_factory=dict)
    """The kind of each tool call of the turn: some agents name only the call when they ask for permission."""
    connections: tuple[ConnectionId, ...] = ()
    """The keys of `attached`, kept as a tuple for the hot path."""
    is_muted: bool = field(default=False, init=False)
    """WAKING or SETTLING, kept as a fact for the hot path."""

    def __post_init__(self) -> None:
        self.is_muted = self.phase in _MUTED

    def change(self, change: Change) -> Phase:
        """Move on. Raises ValueError for a change that the table does not know."""
        try:
            self.phase = TRANSITIONS[self.phase, change]
        except KeyError:
            raise ValueError(f"session {self.id!r} is {self.phase.name}: {change.name} cannot follow") from None
        self.is_muted = self.phase in _MUTED
        return self.phase

    @property
    def is_live(self) -> bool:
        return self.phase is Phase.LIVE

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
