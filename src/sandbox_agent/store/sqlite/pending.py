"""The memory of what was asked of the database and is not yet in it.

The loop's thread adds, the writer's thread takes from the front and settles; readers lay it over what the
database says. Every method is one short critical section.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from sandbox_agent.core.ids import SessionKey, StreamKey
from sandbox_agent.store.operations import Append, DeleteSession, Drop, Operation, PutSession, PutTurn

_OVERHEAD = 200
"""What an operation weighs in memory besides its payload."""


class StreamTail(msgspec.Struct, frozen=True):
    """The end of a stream. `is_whole`: the database has nothing of the stream that counts."""

    appends: list[Append]
    is_whole: bool


class _Stream:
    __slots__ = ("appends", "dropped")

    def __init__(self) -> None:
        self.appends: deque[Append] = deque()
        self.dropped = 0


class Pending:
    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()
        self._operations: deque[Operation] = deque()
        self._in_flight = self._in_flight_bytes = 0
        self._streams: dict[StreamKey, _Stream] = {}
        self._sessions: dict[SessionKey, PutSession | DeleteSession] = {}
        self._deletions: dict[SessionKey, int] = {}
        self._turns: dict[tuple[SessionKey, str], PutTurn] = {}

    def __len__(self) -> int:
        return len(self._operations)

    def add(self, operations: Sequence[Operation]) -> None:
        with self._lock:
            self._operations += operations
            for operation in operations:
                if operation.__class__ is Append and (stream := self._streams.get(operation.stream)) is not None:
                    stream.appends.append(operation)  # nearly always: the rest is in `_index`
                    self.bytes += len(operation.body) + _OVERHEAD
                else:
                    self._index(operation)
                    self.bytes += operation.size + _OVERHEAD

    def take(self, max_bytes: int) -> list[Operation]:
        """The oldest operations, at least one if there is one. They stay here until they are settled."""
        with self._lock:
            if self.bytes <= max_bytes:
                taken = list(self._operations)
                self._in_flight_bytes = self.bytes
            else:
                taken = self._oldest(max_bytes)
            self._in_flight = len(taken)
            return taken

    def _oldest(self, max_bytes: int) -> list[Operation]:
        taken: list[Operation] = []
        size = 0
        for operation in self._operations:
            if taken and size + operation.size > max_bytes:
                break
            taken.append(operation)
            size += operation.size
        self._in_flight_bytes = size + len(taken) * _OVERHEAD
        return taken

    def newer_than(self, number: int) -> list[Operation]:
        """All operations that were added after the one of that number."""
        with self._lock:
            return [operation for operation in self._operations if operation.number > number]

    def give_back(self) -> None:
        """What was taken could not be written."""
        with self._lock:
            self._in_flight = 0

    def settle(self) -> None:
        """What was taken is in the database."""
        with self._lock:
            done = [self._operations.popleft() for _ in range(self._in_flight)]
            self._in_flight = 0
            if len(self._operations) < len(done):
                self._rebuild()  # which is less work than to forget one after the other
            else:
                self.bytes -= self._in_flight_bytes
                for operation in done:
                    self._forget(operation)

    def shrink(self, max_bytes: int, notice: Callable[[Append, int], bytes]) -> int:
        """Give up the oldest lines until at most `max_bytes` are held; say how many operations are lost.

        A notice of what is gone takes the place of a stream's lost lines; `notice` makes its body from the
        newest of them and the first sequence. Session records and turns are kept; only those that newer ones
        replace go, and the answers of turns.
        """
        with self._lock:
            flying = [self._operations.popleft() for _ in range(self._in_flight)]
            waiting, self._operations = self._operations, deque(flying)
            self.bytes = sum(operation.size + _OVERHEAD for operation in waiting)
            losses: dict[StreamKey, int] = {}
            lost = 0
            kept: list[Operation | None] = list(waiting)
            for index, operation in enumerate(waiting):
                if self.bytes <= max_bytes:
                    break
                lost += self._give_up(operation, index, kept, losses, notice)
            self._operations.extend(operation for operation in kept if operation is not None)
            self._rebuild()
            return lost

    def tail(self, stream: StreamKey, after: int) -> StreamTail:
        """The pending appends that reach past `after`."""
        with self._lock:
            found = self._streams.get(stream)
            if found is None:
                return StreamTail([], is_whole=False)
            appends = found.appends
            is_whole = bool(found.dropped or (appends and appends[0].first <= after + 1))
            later = list(itertools.takewhile(lambda append: append.last > after, reversed(appends)))
            later.reverse()
            return StreamTail(later, is_whole)

    def is_dropped(self, stream: StreamKey) -> bool:
        with self._lock:
            found = self._streams.get(stream)
            return found is not None and found.dropped > 0

    def sessions(self) -> dict[SessionKey, bytes | None]:
        """Records that the database does not have yet; None for one that is deleted."""
        with self._lock:
            return {key: _record(operation) for key, operation in self._sessions.items()}

    def session(self, key: SessionKey) -> tuple[bool, bytes | None]:
        """Whether the database need not be asked, and the record."""
        with self._lock:
            operation = self._sessions.get(key)
            return operation is not None, _record(operation)

    def turn(self, key: SessionKey, turn_id: str) -> tuple[bool, PutTurn | None]:
        """Whether the database need not be asked, and the turn."""
        with self._lock:
            turn = self._turns.get((key, turn_id))
            return turn is not None or key in self._deletions, turn

    def _index(self, operation: Operation) -> None:
        match operation:
            case Append():
                self._stream(operation.stream).appends.append(operation)
            case Drop():
                self._drop(operation.stream, operation.number)
            case PutSession():
                self._sessions[operation.key] = operation
            case PutTurn():
                self._turns[operation.key, operation.turn_id] = operation
            case DeleteSession():
                self._sessions[operation.key] = operation
                self._deletions[operation.key] = operation.number
                self._turns = {at: turn for at, turn in self._turns.items() if at[0] != operation.key}
                self._drop(operation.key.stream, operation.number)

    def _forget(self, operation: Operation) -> None:
        match operation:
            case Append():
                self._forget_append(operation)
            case Drop():
                self._forget_drop(operation.stream, operation.number)
            case PutSession():
                self._forget_session(operation)
            case PutTurn():
                at = (operation.key, operation.turn_id)
                if self._turns.get(at) is operation:
                    del self._turns[at]
            case DeleteSession():
                self._forget_session(operation)
                if self._deletions.get(operation.key) == operation.number:
                    del self._deletions[operation.key]
                self._forget_drop(operation.key.stream, operation.number)

    def _stream(self, stream: StreamKey) -> _Stream:
        found = self._streams.get(stream)
        if found is None:
            found = self._streams[stream] = _Stream()
        return found

    def _drop(self, stream: StreamKey, number: int) -> None:
        found = self._stream(stream)
        found.appends.clear()
        found.dropped = number

    def _forget_append(self, operation: Append) -> None:
        found = self._streams.get(operation.stream)
        if found and found.appends and found.appends[0] is operation:
            found.appends.popleft()
            if not found.appends and not found.dropped:
                del self._streams[operation.stream]

    def _forget_drop(self, stream: StreamKey, number: int) -> None:
        found = self._streams.get(stream)
        if found and found.dropped == number:
            found.dropped = 0
            if not found.appends:
                del self._streams[stream]

    def _forget_session(self, operation: PutSession | DeleteSession) -> None:
        if self._sessions.get(operation.key) is operation:
            del self._sessions[operation.key]

    def _give_up(
        self,
        operation: Operation,
        index: int,
        kept: list[Operation | None],
        losses: dict[StreamKey, int],
        notice: Callable[[Append, int], bytes],
    ) -> int:
        """Take one operation out of `kept`, or put a notice there; `losses` says where each stream's is."""
        lost = 0
        match operation:
            case Append():
                first = operation.first
                earlier = losses.get(operation.stream)
                merged = kept[earlier] if earlier is not None else None
                if earlier is not None and isinstance(merged, Append):
                    first = merged.first
                    self.bytes -= merged.size + _OVERHEAD
                    kept[earlier] = None
                body = notice(operation, first)
                kept[index] = msgspec.structs.replace(operation, first=first, body=body, is_loss=True)
                losses[operation.stream] = index
                self.bytes += len(body) - operation.size
                lost = 0 if operation.is_loss else operation.last - operation.first + 1
            case Drop():
                losses.pop(operation.stream, None)
            case DeleteSession():
                losses.pop(operation.key.stream, None)
            case PutSession() if self._sessions.get(operation.key) is not operation:
                self.bytes -= operation.size + _OVERHEAD
                kept[index] = None
            case PutTurn() if self._turns.get((operation.key, operation.turn_id)) is not operation:
                self.bytes -= operation.size + _OVERHEAD
                kept[index] = None
            case PutTurn() if operation.answer:
                # The answer goes, not the turn: one that is known without an answer is never run again.
                self.bytes -= len(operation.answer)
                kept[index] = msgspec.structs.replace(operation, answer=None)
                lost = 1
            case _:
                pass
        return lost

    def _rebuild(self) -> None:
        self.bytes = sum(operation.size + _OVERHEAD for operation in self._operations)
        self._streams.clear()
        self._sessions.clear()
        self._deletions.clear()
        self._turns.clear()
        for operation in self._operations:
            self._index(operation)


def _record(operation: PutSession | DeleteSession | None) -> bytes | None:
    return operation.record if isinstance(operation, PutSession) else None
