"""The one who writes to PostgreSQL: what waits goes in together, in order, until it is in or its lease is lost."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence

import asyncpg

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.errors import SandboxAgentError, SessionElsewhere, StoreError
from sandbox_agent.store.base import Source, alias_taken
from sandbox_agent.store.operations import Append, DeleteSession, Drop, Operation
from sandbox_agent.store.postgres.connecting import Connection, Place
from sandbox_agent.store.postgres.leases import Node, Superseded
from sandbox_agent.store.postgres.writing import Claim, remove, take_in

_GROUP_BYTES = 8 << 20
_FIRST_RETRY, _LONGEST_RETRY = 0.05, 2.0
_AGAIN = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""The transaction stood in another's way: it may be tried again at once."""
_AWAY = (
    OSError,
    TimeoutError,
    StoreError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InternalClientError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.UndefinedTableError,
    asyncpg.PostgresSystemError,
    *_AGAIN,
)
"""Not what is written is at fault: it is tried until it succeeds."""
_log = logging.getLogger("sandbox_agent.store")


class StreamState:
    """What this server knows of a stream. `epoch` None: nobody has claimed it, its first commit does."""

    __slots__ = ("alias", "committed", "epoch", "last", "lost", "source", "stream", "time", "waiting")

    def __init__(self, stream: StreamKey, *, last: int = 0, epoch: int | None = None, time: float = 0.0) -> None:
        self.stream = stream
        self.alias: str | None = None
        """Reserved for it; its next commit takes that away."""
        self.last = last
        self.committed = last
        self.epoch = epoch
        self.time = time
        self.lost: SandboxAgentError | None = None
        self.source: Source = "server"
        self.waiting: list[bytes] = []


class Committer:
    """Takes operations with the state of the stream that each belongs to. Everything here is on the event loop."""

    def __init__(self, place: Place, node: Node, on_lost: Callable[[StreamState], None]) -> None:
        self.problem: str | None = None
        self.bytes = 0
        """Of what is not committed yet."""
        self.superseded: Superseded | None = None
        self._place = place
        self._node = node
        self._on_lost = on_lost
        self._connection: Connection | None = None
        self._queue: deque[tuple[Operation, StreamState]] = deque()
        self._given = 0
        self._done = 0
        self._calls: deque[tuple[int, Callable[[], None]]] = deque()
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="store-committer")

    @property
    def is_idle(self) -> bool:
        return self._done == self._given

    def add(self, operation: Operation, state: StreamState) -> None:
        self._queue.append((operation, state))
        self._given += 1
        self.bytes += operation.size
        self._wake.set()

    def once_done(self, call: Callable[[], None]) -> None:
        """Call when everything added so far is in; at once if it is."""
        if self.is_idle and not self._calls:
            call()
        else:
            self._calls.append((self._given, call))

    async def done(self) -> None:
        if not self.is_idle or self._calls:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.once_done(lambda: None if waiter.done() else waiter.set_result(None))
            await waiter

    async def close(self, patience: float) -> None:
        """Commit what waits, bounded in time."""
        try:
            async with asyncio.timeout(patience):
                await self.done()
        except TimeoutError:
            _log.error(
                "closed with %d operations unwritten, which nobody was told of: %s", len(self._queue), self.problem
            )
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def lose(self, state: StreamState, error: SandboxAgentError) -> None:
        """Another server has the stream."""
        if state.lost is None:
            state.lost = error
            _log.warning("%s", error.detail)
            self._on_lost(state)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                group = self._next_group()
                await self._persist(group)
                for operation, _ in group:
                    self.bytes -= operation.size
                self._done += len(group)
                self._call()

    def _next_group(self) -> list[tuple[Operation, StreamState]]:
        """As many as go together. What removes something goes alone."""
        group: list[tuple[Operation, StreamState]] = []
        size = 0
        while self._queue and size < _GROUP_BYTES:
            if isinstance(self._queue[0][0], Drop | DeleteSession):
                return group or [self._queue.popleft()]
            size += self._queue[0][0].size
            group.append(self._queue.popleft())
        return group

    def _call(self) -> None:
        while self._calls and self._calls[0][0] <= self._done:
            _, call = self._calls.popleft()
            try:
                call()
            except Exception:  # noqa: BLE001 - whoever comes next must be told all the same
                _log.exception("what waited for the store failed")

    async def _persist(self, group: Sequence[tuple[Operation, StreamState]]) -> None:
        """Return when all of it is in, or cannot be."""
        retry = _FIRST_RETRY
        while True:
            group = [(operation, state) for operation, state in group if state.lost is None]
            if not group:
                return
            try:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._place.connect()
                await self._write(self._connection, group)
            except Superseded as error:
                self.supersede(error)
                for _, state in group:
                    self.lose(state, error)
            except _AGAIN:
                await asyncio.sleep(random.uniform(0.001, 0.02))
            except _AWAY as error:
                self._report(error)
                await asyncio.sleep(retry)
                retry = min(retry * 2, _LONGEST_RETRY)
            except Exception as error:  # noqa: BLE001 - what is written is at fault: it must not keep all others waiting
                await self._isolate(group, error)
                return
            else:
                self._recovered()
                return

    async def _isolate(self, group: Sequence[tuple[Operation, StreamState]], error: Exception) -> None:
        if len(group) > 1:
            for each in group:
                await self._persist([each])
            return
        ((operation, state),) = group
        _log.error("the database cannot take in %s of %s", type(operation).__name__, state.stream, exc_info=error)
        self.lose(state, StoreError(f"history cannot go on: {self._place.explain(error)}"))

    async def _write(self, connection: Connection, group: Sequence[tuple[Operation, StreamState]]) -> None:
        operation, state = group[0]
        if isinstance(operation, Drop | DeleteSession):
            await remove(connection, self._node, operation, state.epoch)
            return
        states: dict[StreamKey, StreamState] = {}
        last: dict[StreamKey, Append] = {}
        plain = []
        for operation, state in group:
            states[state.stream] = state
            if isinstance(operation, Append):
                last[operation.stream] = operation
            if not isinstance(operation, Drop | DeleteSession):
                plain.append(operation)
        claims = [
            Claim(
                stream,
                state.epoch,
                state.committed,
                last[stream].last if stream in last else state.committed,
                last[stream].time if stream in last else state.time,
                state.alias,
            )
            for stream, state in states.items()
        ]
        taken = await take_in(connection, self._node, claims, plain)
        for claim in claims:
            state = states[claim.stream]
            if claim.stream in taken.epochs:
                state.epoch = taken.epochs[claim.stream]
                state.committed = claim.last
                if claim.alias is not None:
                    state.alias = None
            elif claim.stream in taken.misnamed:
                self.lose(state, alias_taken(claim.alias or ""))
            else:
                self.lose(state, _elsewhere(state))

    def supersede(self, error: Superseded) -> None:
        """Nothing that this server has is its own any more."""
        if self.superseded is None:
            self.superseded = error
            self.problem = error.detail
            _log.error("%s", error.detail)
        for _, state in list(self._queue):
            self.lose(state, error)

    def _report(self, error: BaseException) -> None:
        said = error.detail if isinstance(error, StoreError) else self._place.explain(error)
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
        if self.problem is None:
            _log.error("history is not being written, nothing new is told until it is: %s", said)
        self.problem = said

    def _recovered(self) -> None:
        if self.problem is not None and self.superseded is None:
            self.problem = None
            _log.warning("history is being written again (%s)", self._place)


def _elsewhere(state: StreamState) -> SessionElsewhere:
    session = state.stream.split(":", 2)[-1]
    if state.epoch is None:
        return SessionElsewhere(
            f"the agent has named a new session {session!r}, as one was named before: make another session",
            sessionId=session,
        )
    return SessionElsewhere(
        f"another server has taken session {session!r} over: what it was doing here has stopped", sessionId=session
    )
