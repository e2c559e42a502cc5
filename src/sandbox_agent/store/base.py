"""What the hub asks of a store: append-only streams, session records, finished turns.

Appends do not wait: they hand out sequence numbers at once, so that the hub can decide and deliver in one
step. A store that keeps data on disk makes every appended line survive the death of this process before
`append` or `flush` returns; it commits for good behind the hub's back. When it cannot, it says so in `health()`
and goes on: a full disk must not stop a conversation. A store that others share cannot: what is told waits until
it is `safe`. Everything here is for one thread, the event loop's.

Whoever appends to a stream that was there before acquires it first. That gives a lease: an epoch, under which
nobody else writes, and where the stream ends. A stream that nobody had needs none; its first entry acquires it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.errors import Conflict, SandboxAgentError
from sandbox_agent.store.search import Findings, Query

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


class Lease(NamedTuple):
    """The right to append to a stream, until somebody gets a higher epoch. `last` is its newest entry, 0 for none."""

    epoch: int
    last: int


class SessionRecord(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """All that is known of a session besides its history."""

    agent: AgentId
    session_id: SessionId
    native_id: str | None = None
    """What the agent calls it, where that is not `session_id`: it had given the name before."""
    name_given_to: SessionId | None = None
    """Who may have this one's name now: of the first session that had it, the newest that the agent has given it to."""
    alias: str | None = None
    cwd: str | None = None
    title: str | None = None
    mode: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    mcp_servers: list[Any] = []
    additional_directories: list[str] = []
    skills: Any = None
    metadata: dict[str, Any] = {}
    offered: dict[str, Any] = msgspec.field(name="setup", default_factory=dict)
    """What the agent answered when the session was made (modes, models, config options), kept current."""
    usage: dict[str, Any] = {}
    """How full the context was and what the session has cost, when the agent told of it last."""
    first_prompt: str | None = None
    """How the conversation began, for those who look for a name."""
    last_error: str | None = None
    """Why the newest turn failed; None if it did not."""
    created: float = 0.0
    updated: float = 0.0
    ended: float | None = None
    ended_reason: str | None = None
    event_count: int = 0
    owner: str | None = None
    """The node that uses it, where several share a database, as the store knew when it was read or written."""
    spoken: list[tuple[int, int]] = []
    """From which entry of the history on which version of ACP was spoken; version 1 before the first."""

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.agent, self.session_id)

    @property
    def native(self) -> str:
        """What the agent calls it."""
        return self.native_id or self.session_id


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
    kind: Literal["memory", "sqlite", "postgresql"]
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

    is_immediate: bool
    """What was flushed is safe as soon as `flush` returns, and stays this server's: it need not be waited for."""

    async def acquire(self, stream: StreamKey) -> Lease:
        """Become the one who appends to a stream; a higher epoch than all before. Asking again changes nothing.

        Raises SessionElsewhere while another server has it, StoreError when that cannot be found out."""

    def lost(self, stream: StreamKey) -> SandboxAgentError | None:
        """Why nothing more can be appended to a stream that was acquired: somebody else has it. It stays so until it is
        acquired again; what is appended meanwhile is thrown away."""

    def watch(self, on_lost: Callable[[SessionKey, SandboxAgentError], None]) -> None:
        """Have `on_lost` called whenever a session's history is lost, before anything is called that waits for it."""

    def append(self, stream: StreamKey, source: Source, lines: Sequence[bytes], *, flush: bool = True) -> int:
        """Append, and give the sequence of the first line. Never raises for want of disk.

        With `flush=False` nobody who may remember them after our death may be told of the lines, nor of what follows
        from them, before `flush`."""

    def flush(self) -> None:
        """Make what was appended without a flush survive the death of this process, all of it in one go."""

    def once_safe(self, call: Callable[[], None]) -> None:
        """Flush, and call when everything appended and put so far survives our death and nobody can take it back; at
        once if it does. In the order in which they were given, and never before a stream is known to be lost."""

    async def safe(self) -> None:
        """Return when `once_safe` would call."""

    def is_new(self, stream: StreamKey) -> bool:
        """Whether a stream can be begun under this name: nobody has had it, as far as can be said at once.

        Raises StoreError."""

    def last_sequence(self, stream: StreamKey) -> int:
        """The sequence of the newest entry, 0 for a stream that has none. It is new, or was acquired."""

    async def newest(self, stream: StreamKey) -> int:
        """As `last_sequence`, of any stream, whoever appends to it."""

    async def read(self, stream: StreamKey, *, after: int, limit: int, max_bytes: int = 1 << 20) -> list[Entry]:
        """Entries later than `after`, oldest first, at most `limit`; at least one if there is one.

        Stops before `max_bytes` of envelopes. Where retention has removed the oldest, starts at the oldest
        kept. Raises StoreError when the data cannot be read.
        """

    async def drop(self, stream: StreamKey) -> None:
        """Forget a stream and its entries."""

    def reserved(self, alias: str) -> AbstractAsyncContextManager[bool]:
        """Keep an alias for a session that is put within the block. Gives False if another server that shares the store
        keeps it; whether a session has it is for the caller to find out, after that. Raises StoreError."""

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

    async def search(self, query: Query, *, limit: int, each: int) -> Findings:
        """Sessions whose history has all the words, at most `limit`, with at most `each` of their passages.

        What was appended shortly before may be missing: then it says so. Raises NotFound when search is off."""

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


def alias_taken(alias: str) -> Conflict:
    """Why a session cannot be made with this alias."""
    return Conflict(f"a session with id or alias {alias!r} exists already")
