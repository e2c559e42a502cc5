"""The one who writes to the database, in the background: group commit, retry, and clearing out."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from sandbox_agent.store.base import Retention
from sandbox_agent.store.batches import ROW_BYTES
from sandbox_agent.store.operations import DeleteSession, Drop, Operation, encode_operation
from sandbox_agent.store.sqlite.background import Background, Rest, Steps
from sandbox_agent.store.sqlite.intake import StaleEpochError, purge_dropped, remove_aged, remove_oldest, take_in
from sandbox_agent.store.sqlite.journal import Journal
from sandbox_agent.store.sqlite.pending import Pending
from sandbox_agent.store.sqlite.schema import transaction
from sandbox_agent.store.sqlite.troubles import Troubles

_FIRST_RETRY = 0.1
_PURGE_ROWS = 64
_DROPPING: frozenset[type[Operation]] = frozenset({Drop, DeleteSession})
_log = logging.getLogger("sandbox_agent.store")


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How the writer uses its time, in seconds, and its transactions, in bytes."""

    linger: float = 0.2
    """How long a little work waits for more. The journal has it already, so nothing is at stake."""
    plenty_bytes: int = 1024 * 1024
    """So much work does not wait."""
    transaction_bytes: int = 8 * 1024 * 1024
    longest_retry: float = 5.0
    retention_interval: float = 60.0


class OnCommit(Protocol):
    """Told in the writer's thread that the database has everything up to the operation `number` (0: nothing new);
    `has_dropped`: streams were dropped."""

    def __call__(self, number: int, *, has_dropped: bool) -> None: ...


class Upkeep(msgspec.Struct, frozen=True):
    """When the writer writes, and what it clears out."""

    pace: Pace
    retention: Retention
    clock: Callable[[], float]


class Backlog(NamedTuple):
    """What was asked of the database and is not yet in it: in memory and, unless there is trouble, in the journal."""

    pending: Pending
    journal: Journal
    troubles: Troubles

    def mend_journal(self) -> None:
        """Write down what the journal has missed, and only then call it well again. Raises OSError."""
        with self.journal.lock:
            missed = self.pending.newer_than(self.journal.newest)
            if missed:
                self.journal.write(missed[-1].number, map(encode_operation, missed))
            else:
                self.journal.probe()
            self.troubles.clear("journal")


class Writer:
    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        epoch: int,
        backlog: Backlog,
        upkeep: Upkeep,
        on_commit: OnCommit,
        background: Background,
    ) -> None:
        self._connection = connection
        self._path, self._file = path, path.stat()
        self._epoch = epoch
        self._backlog = backlog
        self._pending, self._journal, self._troubles = backlog
        self._pace, self._retention, self._clock = upkeep.pace, upkeep.retention, upkeep.clock
        self._on_commit = on_commit
        self._retry = _FIRST_RETRY
        self._has_dropped = True
        self._next_retention = 0.0
        self._wake = background.event()
        self._hurry = background.event()
        self._closing = background.event()
        self._made_room = background.event()
        self._worker = background.worker("store-writer", self._steps())

    def start(self) -> None:
        self._worker.start()

    def stop(self, timeout: float) -> bool:
        """Commit what is pending and end; say whether that was done in time."""
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        return self._worker.finish(timeout)

    def notify(self) -> None:
        """There is something to write."""
        if not self._wake.is_set():
            self._wake.set()
        if self._pending.bytes > self._pace.plenty_bytes and not self._hurry.is_set():
            self._hurry.set()

    def hasten(self) -> None:
        """There is trouble: what waits for more to come should wait no longer."""
        self._hurry.set()
        self._wake.set()

    def wait_for_room(self, timeout: float) -> None:
        """Block until the next commit: for a caller that would otherwise outrun the disk."""
        self._made_room.clear()
        self._hurry.set()
        self._made_room.wait(timeout)

    def _steps(self) -> Steps:
        while not (self._closing.is_set() and not len(self._pending)):
            try:
                yield from self._work()
            except Exception as error:  # noqa: BLE001 - the writer must outlive a fault of ours
                _log.exception("the store's writer stumbled")
                self._troubles.report("database", f"internal error: {error}")
                yield self._fall_back()
            if self._closing.is_set() and self._troubles.has_problem("database"):
                break

    def _work(self) -> Steps:
        if not self._pending:
            yield Rest(self._wake, 0.01 if self._has_dropped else 1.0)
        if self._pending:
            if not self._troubles.is_degraded:
                yield Rest(self._hurry, self._pace.linger)
            if not self._closing.is_set():
                self._hurry.clear()
        self._wake.clear()
        if self._pending or self._troubles.has_problem("database"):
            yield from self._guard(self._commit())
        if self._troubles.has_problem("journal"):
            yield from self._try_journal()
        if not self._closing.is_set() and not self._troubles.has_problem("database"):
            yield from self._guard(self._clear_out())

    def _guard(self, steps: Steps) -> Steps:
        try:
            yield from steps
        except (sqlite3.Error, OSError, StaleEpochError) as error:
            self._troubles.report("database", str(error))
            yield self._fall_back()

    def _fall_back(self) -> Rest:
        self._pending.give_back()
        rest = Rest(self._closing, self._retry)
        self._retry = min(self._retry * 2, self._pace.longest_retry)
        return rest

    def _commit(self) -> Steps:
        """Take in what is pending; if nothing is, find out whether the database can be written to."""
        operations = self._pending.take(self._pace.transaction_bytes)
        self._check_file()
        yield None
        take_in(self._connection, self._epoch, operations, self._troubles.refuse)
        yield None
        self._pending.settle()
        yield None
        number = operations[-1].number if operations else 0
        if operations:
            self._journal.release(number)
        has_dropped = not _DROPPING.isdisjoint(map(type, operations))
        self._has_dropped |= has_dropped
        self._on_commit(number, has_dropped=has_dropped)
        self._retry = _FIRST_RETRY
        self._made_room.set()
        self._troubles.clear("database")

    def _check_file(self) -> None:
        """A database that was deleted under us takes everything in, and keeps none of it."""
        now = self._path.stat()
        if (now.st_ino, now.st_dev) != (self._file.st_ino, self._file.st_dev):
            raise OSError(f"{self._path} was replaced while the server was running; restart the server")

    def _try_journal(self) -> Steps:
        try:
            self._backlog.mend_journal()
        except OSError as error:
            self._troubles.report("journal", str(error))
            yield Rest(self._closing, min(self._retry, 1.0))

    def _clear_out(self) -> Steps:
        if self._has_dropped:
            with transaction(self._connection):
                self._has_dropped = purge_dropped(self._connection, _PURGE_ROWS) > 0
            yield None
        if self._clock() >= self._next_retention:
            self._next_retention = self._clock() + self._pace.retention_interval
            yield from self._retain()
        self._give_pages_back()

    def _retain(self) -> Steps:
        """Remove what is too old or too much, in small steps; new work interrupts until the next time."""
        age, size = self._retention.age, self._retention.bytes
        while age is not None and not self._is_hurried:
            with transaction(self._connection):
                if not remove_aged(self._connection, self._clock() - age, _PURGE_ROWS):
                    break
            yield None
        while size is not None and not self._is_hurried:
            excess = self._used_bytes() - size
            if excess <= 0:
                break
            with transaction(self._connection):
                if not remove_oldest(self._connection, min(_PURGE_ROWS, 1 + excess // ROW_BYTES)):
                    break
            yield None

    @property
    def _is_hurried(self) -> bool:
        """Whether somebody waits for work that is there: what hastened us may be done by now."""
        return self._hurry.is_set() and bool(self._pending)

    def _used_bytes(self) -> int:
        return (self._pragma("page_count") - self._pragma("freelist_count")) * self._pragma("page_size")

    def _give_pages_back(self) -> None:
        """Shrink the file a little at a time, once much of it is empty."""
        if self._pragma("freelist_count") > 2048:
            # A script, because it is stepped to its end; `execute` would stop after the first page.
            self._connection.executescript("PRAGMA incremental_vacuum(1024)")

    def _pragma(self, name: str) -> int:
        (value,) = self._connection.execute(f"PRAGMA {name}").fetchone()
        return int(value)
