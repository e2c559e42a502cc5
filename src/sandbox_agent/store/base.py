"""What the hub asks of a store: append-only streams, session records, finished turns.

Appends do not wait: they hand out sequence numbers at once, so that the hub can decide and deliver in one
step. A store that keeps data on disk makes every appended line survive the death of this process before
`append` or `flush` returns; it commits for good behind the hub's back. When it cannot, it says so in `health()`
and goes on: a full disk must not stop a conversation. Everything here is for one thread, the event loop's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey

Source = Literal["client", "agent", "server"]


class Entry(msgspec.Struct, frozen=True):
    """One envelope of a stream. `time` is in seconds since the epoch.

    `sequence` counts from 1 without holes. Lines that could not be kept are the exception: a single notice,
    `_sandboxagent/history/lost {fromSequence,toSequence,reason}` from the server, stands at `toSequence` for
    all.
    """

    sequence: int
    time: float
    source: Source
    envelope: bytes


class SessionRecord(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """All that is known of a session besides its history."""

    agent: AgentId
    session_id: SessionId
    alias: str | None = None
    cwd: str | None = None
    title: str | None = None
    mode: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    mcp_servers: list[Any] = []
    skills: Any = None
    metadata: dict[str, Any] = {}
    offered: dict[str, Any] = msgspec.field(name="setup", default_factory=dict)
    """What the agent answered when the session was made (modes, models, config options), kept current."""
    created: float = 0.0
    updated: float = 0.0
    ended: float | None = None
    ended_reason: str | None = None
    event_count: int = 0

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.agent, self.session_id)


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long history is kept, in seconds and in bytes; the oldest goes first. None: for ever, without bound."""

    age: float | None
    bytes: int | None


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    agent: AgentId | None = None
    cwd: str | None = None
    is_ended: bool | None = None


class SessionPage(msgspec.Struct, frozen=True):
    """Newest `updated` first. `next_cursor` is opaque and None on the last page."""

    sessions: list[SessionRecord]
    next_cursor: str | None
    unreadable: list[SessionKey] = []
    """Sessions of this page whose records are damaged. Their histories may be whole."""


class StoreHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: Literal["memory", "sqlite"]
    state: Literal["ok", "degraded"]
    pending_bytes: int = 0
    """Appended, not yet committed for good."""
    lost_entries: int = 0
    """Appended and given up: they could not be written, and are gone from memory too."""
    problem: str | None = None
    path: str | None = None
    damaged: int = 0
    """Rows met since the start that could not be read as they were written."""
    set_aside: list[str] = []
    """Files with what could not be used; `sandbox-agent store check` says more."""


class Store(Protocol):
    async def open(self) -> None:
        """Raise StoreError with the path and what to do when the data cannot be used; never overwrite it."""

    async def close(self) -> None:
        """Commit what is pending, bounded in time."""

    def append(self, stream: StreamKey, source: Source, lines: Sequence[bytes], *, flush: bool = True) -> int:
        """Append, and give the sequence of the first line. Never raises for want of disk.

        With `flush=False` nobody who may remember them after our death may be told of the lines, nor of what follows
        from them, before `flush`."""

    def flush(self) -> None:
        """Make what was appended without a flush survive the death of this process, all of it in one go."""

    def last_sequence(self, stream: StreamKey) -> int:
        """The sequence of the newest entry, 0 for a stream that has none."""

    async def read(self, stream: StreamKey, *, after: int, limit: int, max_bytes: int = 1 << 20) -> list[Entry]:
        """Entries later than `after`, oldest first, at most `limit`; at least one if there is one.

        Stops before `max_bytes` of envelopes. Where retention has removed the oldest, starts at the oldest
        kept. Raises StoreError when the data cannot be read.
        """

    async def drop(self, stream: StreamKey) -> None:
        """Forget a stream and its entries."""

    def put_session(self, record: SessionRecord) -> None:
        """Insert or replace, visible to reads at once. Values that do not fit their fields are left out, and logged."""

    async def get_session(self, key: SessionKey) -> SessionRecord | None:
        """Raise StoreError when the record is damaged."""

    async def find_sessions(self, name: str) -> list[SessionRecord]:
        """Every session whose id or alias is `name`, over all agents. Raises StoreError when none can be read."""

    async def list_sessions(
        self, matching: SessionFilter, *, cursor: str | None = None, limit: int = 100
    ) -> SessionPage:
        """A page of at most `limit` sessions, and those besides that moved up past the pages given before.

        So paging shows each session once, while sessions are updated. Raises InvalidParams for a strange
        cursor.
        """

    async def delete_session(self, key: SessionKey) -> None:
        """Forget the record, its turns and its history."""

    def put_turn(self, key: SessionKey, turn_id: str, answer: bytes | None) -> None:
        """Remember a turn: running (`None`) or finished with this JSON-RPC answer."""

    async def get_turn(self, key: SessionKey, turn_id: str) -> tuple[bool, bytes | None]:
        """Whether the turn is known, and its answer if it has one."""

    @property
    def is_degraded(self) -> bool:
        """What was appended or put since may be forgotten if this process dies now."""

    def backlog(self) -> int:
        """Bytes appended and not yet committed: the hub slows agents down when it grows too large."""

    def health(self) -> StoreHealth: ...
