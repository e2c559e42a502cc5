"""The life of a session as a table, and what is under way in it: who is attached, its turns, its open questions.

Nobody sets a session's phase: it moves by changes, and a change that the table does not know is a bug.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sandbox_agent.core.echo import Echo
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.permission_policy import ASK, PermissionPolicy
from sandbox_agent.core.versions import HeldPrompt, Version


class Phase(enum.Enum):
    DORMANT = "no process holds it; the next prompt wakes it"
    WAKING = "the process takes it up again: what it replays meanwhile we have already"
    SETTLING = "the load was answered: a late replay is still passed over, everything else is told"
    LIVE = "the running process holds it"
    CLOSING = "the process is asked to let it go: what runs may end, nothing begins"
    ENDED = "over for good; it can be read"


class Change(enum.Enum):
    WAKE = "the process is asked to take it up"
    LOADED = "a load was answered; some agents replay only then"
    AWAKE = "the process holds it"
    FAILED = "it could not be woken"
    CLOSE = "the process is about to be asked to let it go"
    KEPT = "the process has not let it go"
    RELEASED = "closed at the agent; it can be woken again"
    EXITED = "the process is gone"
    END = "ended for good"


IDLE = {"state": "idle"}
_MUTED = (Phase.WAKING, Phase.SETTLING)
_NOT_ENDED = tuple(phase for phase in Phase if phase is not Phase.ENDED)

TRANSITIONS: dict[tuple[Phase, Change], Phase] = {
    (Phase.DORMANT, Change.WAKE): Phase.WAKING,
    (Phase.WAKING, Change.LOADED): Phase.SETTLING,
    (Phase.WAKING, Change.AWAKE): Phase.LIVE,
    (Phase.SETTLING, Change.AWAKE): Phase.LIVE,
    (Phase.WAKING, Change.FAILED): Phase.DORMANT,
    (Phase.SETTLING, Change.FAILED): Phase.DORMANT,
    (Phase.DORMANT, Change.FAILED): Phase.DORMANT,
    (Phase.LIVE, Change.CLOSE): Phase.CLOSING,
    (Phase.CLOSING, Change.CLOSE): Phase.CLOSING,
    (Phase.CLOSING, Change.KEPT): Phase.LIVE,
    **{(phase, Change.RELEASED): Phase.DORMANT for phase in _NOT_ENDED},
    **{(phase, Change.EXITED): Phase.DORMANT for phase in _NOT_ENDED},
    **{(phase, Change.END): Phase.ENDED for phase in Phase},
    **{(Phase.ENDED, change): Phase.ENDED for change in Change if change is not Change.WAKE},
}


@dataclass(frozen=True, slots=True)
class Client:
    """A connection as the relay sees it: its name, the capabilities that it claimed, what it says it is and speaks."""

    id: ConnectionId
    claims: frozenset[tuple[str, ...]] = frozenset()
    info: dict[str, Any] = field(default_factory=dict, compare=False)
    version: Version = Version.V1
    hears_all: bool = False
    """What the agent says reaches it as it was said, whatever version that is: it reads the history, too."""
    user: str | None = None
    """The name on its token."""
    may_answer: bool = True
    """One who may only read is asked nothing."""

    def answers(self, claim: tuple[str, ...] | None) -> bool:
        """Whether it can answer a request that needs `claim`."""
        return self.may_answer and (claim is None or claim in self.claims)

    def hears(self, spoken: Version) -> Version:
        """The version in which it is told what an agent said in version `spoken`."""
        return spoken if self.hears_all else self.version


class Call(msgspec.Struct, eq=False):
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
    echo: Echo | None = None
    """Made when the agent sends some of a prompt back."""
    policy: PermissionPolicy | None = None
    """For a call that makes a session: who answers its permissions from the first one on."""
    remembered: bytes | None = None
    """For a call that makes a session: the line that its history has instead, where the real one has secrets."""
    version: Version = Version.V1
    """In which the line was written: the client's; the server's own calls are of version 1."""
    asked: bytes = b""
    """The line as it was, where the agent speaks another version."""
    message_id: str = ""
    """The name of a prompt as a message, where a client of version 2 wants to know and the agent gives none."""
    held: HeldPrompt | None = None
    """A prompt at an agent of version 2, which tells of its end only after it has answered."""
    is_taken_up: bool = False
    """Such an agent has answered, and what is left is the end."""
    is_answered: bool = False
    """A prompt whose client has its answer although its turn goes on: in version 2 that says only that it began."""

    @property
    def connection(self) -> ConnectionId | None:
        return None if self.client is None else self.client.id

    @property
    def user(self) -> str | None:
        return None if self.client is None else self.client.user

    @property
    def prompt_id(self) -> str:
        """How a prompt is called towards clients."""
        return f"prompt_{self.id}"


class Ask(msgspec.Struct):
    """A request of the agent that waits for somebody's answer."""

    id: int
    agent_key: bytes
    method: str
    session: SessionId | None
    line: bytes
    """The message as clients see it, under our id."""
    asked: set[ConnectionId] = msgspec.field(default_factory=set)
    is_served: bool = False
    """The host is working on it: clients are not asked."""


class Session(msgspec.Struct):
    id: SessionId
    """Ours. It never means another session, whatever the agent calls its next ones."""
    phase: Phase = Phase.LIVE
    policy: PermissionPolicy = ASK
    attached: dict[ConnectionId, Client] = msgspec.field(default_factory=dict)
    running: Call | None = None
    """The prompt whose turn it is."""
    queue: deque[Call] = msgspec.field(default_factory=deque)
    """The prompts after it."""
    asks: dict[int, Ask] = msgspec.field(default_factory=dict)
    tool_kinds: dict[str, str] = msgspec.field(default_factory=dict)
    """The kind of each tool call of the turn: some agents name only the call when they ask for permission."""
    opened: bytes = b"null"
    """The result with which the agent opened it, in the agent's version."""
    activity: dict[str, Any] = msgspec.field(default_factory=lambda: dict(IDLE))
    """What an agent of version 2 last said that it does (`state_update`), whether or not a prompt of ours runs."""
    connections: tuple[ConnectionId, ...] = ()
    """The keys of `attached`, kept as a tuple for the hot path."""
    native: str = ""
    """What the agent calls it: nearly always the same as `id`."""
    parent: SessionId | None = None
    """The session in which the agent announced it, of one that the agent made for a helper of its own."""
    woken_after: int = 0
    """The newest call when its process had taken it up again: the names that earlier ones give may be this one's."""
    is_muted: bool = False
    """A replay was asked for, and may still come: also when the session was closed or ended before, until the process
    exits."""
    is_plain: bool = True
    """What the agent says of it can be told as it came, kept as a fact for the hot path."""

    def __post_init__(self) -> None:
        self.is_muted = self.phase in _MUTED
        self.rename(self.native or self.id)

    def rename(self, native: str) -> None:
        """The process that takes it up calls it so."""
        self.native = native
        self._look()

    def change(self, change: Change) -> Phase:
        """Move on. Raises ValueError for a change that the table does not know."""
        try:
            self.phase = TRANSITIONS[self.phase, change]
        except KeyError:
            raise ValueError(f"session {self.id!r} is {self.phase.name}: {change.name} cannot follow") from None
        is_given_up = self.phase in (Phase.DORMANT, Phase.ENDED) and change is not Change.EXITED
        self.is_muted = self.phase in _MUTED or (self.is_muted and is_given_up)
        self._look()
        return self.phase

    def _look(self) -> None:
        self.is_plain = not self.is_muted and self.native == self.id

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs, or the agent says that it works."""
        return self.running is not None or self.activity.get("state") != "idle"

    @property
    def is_at_work(self) -> bool:
        """Whether it is busy, or does something in the background."""
        return self.is_busy or bool(self.activity.get("background"))

    @property
    def is_live(self) -> bool:
        """Whether the running process holds it."""
        return self.phase in (Phase.LIVE, Phase.CLOSING)

    @property
    def can_begin(self) -> bool:
        """Whether the running process may be given a prompt of it."""
        return self.phase is Phase.LIVE

    @property
    def is_idle(self) -> bool:
        """Whether no prompt runs or waits."""
        return self.running is None and not self.queue

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
        return [c.id for c in self.attached.values() if c.answers(claim)]
