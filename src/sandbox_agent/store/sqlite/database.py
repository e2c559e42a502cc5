"""The files of the embedded store and the threads over them: lock, journal, writer, readers."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sandbox_agent.core.ids import CONNECTION_PREFIX
from sandbox_agent.errors import StoreError, StoreInUse
from sandbox_agent.store.batches import encode_loss
from sandbox_agent.store.operations import Append, Drop, Operation, encode_operation
from sandbox_agent.store.search import Findings, Query
from sandbox_agent.store.sqlite.background import Background
from sandbox_agent.store.sqlite.disk import Disk
from sandbox_agent.store.sqlite.indexer import Indexer, ensure_identity
from sandbox_agent.store.sqlite.intake import drop_connections, take_in
from sandbox_agent.store.sqlite.journal import Journal, read_journal
from sandbox_agent.store.sqlite.pending import Pending
from sandbox_agent.store.sqlite.schema import begin_epoch, open_database, open_reader, transaction, unusable
from sandbox_agent.store.sqlite.troubles import Troubles
from sandbox_agent.store.sqlite.writer import Backlog, Upkeep, Writer

CLOSE_SECONDS = 3.0
_ROOM_SECONDS = 1.0
_REPLAY_OPERATIONS = 1000
_log = logging.getLogger("sandbox_agent.store")
P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """Takes operations in order from one thread; answers queries off that thread."""

    def __init__(
        self,
        path: Path,
        *,
        upkeep: Upkeep,
        memory_bytes: int,
        search_text_bytes: int,
        disk: Disk,
        background: Background,
    ) -> None:
        self.path = path
        self.pending = Pending()
        self.troubles = Troubles(path)
        self.epoch = 0
        self._upkeep = upkeep
        self._memory_bytes = memory_bytes
        self._lock = DatabaseLock(path)
        self._disk = disk
        self._background = background
        self._journal = Journal(path, disk=disk)
        self._number = 0
        self._is_open = False
        self._search_text_bytes = search_text_bytes
        self._connections: list[sqlite3.Connection] = []

    def open(self) -> None:
        """Blocks. Raises StoreError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"cannot create the data directory {self.path.parent}: {error.strerror}") from error
        self._lock.acquire()
        try:
            self._open()
        except BaseException as error:
            self._close_files()
            if isinstance(error, sqlite3.Error):
                raise unusable(self.path, error) from error
            if isinstance(error, OSError):
                raise StoreError(f"cannot open the journal of {self.path}: {error}") from error
            raise

    def close(self) -> None:
        """Blocks, for a bounded time. What cannot be committed by then stays in the journal."""
        if not self._is_open:
            return
        self._is_open = False
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._indexer.stop()
        is_stopped = self._writer.stop(CLOSE_SECONDS)
        if self.pending:
            _log.error("closed with %d operations in the journal at best (%s)", len(self.pending), self.path)
        if is_stopped:
            self._close_files()

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def submit(self, operations: Sequence[Operation]) -> None:
        """Write to the journal in one go, and queue for the database. Never raises for want of disk."""
        if not self._is_open:
            raise StoreError(f"the history database {self.path} is not open")
        with self._journal.lock:
            if not self.troubles.has_problem("journal"):
                try:
                    self._journal.write(operations[-1].number, map(encode_operation, operations))
                except OSError as error:
                    self.troubles.report("journal", str(error))
                    self._writer.hasten()
            self.pending.add(operations)
        self._writer.notify()
        if self.pending.bytes > self._memory_bytes:
            self._relieve()

    async def query(self, ask: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask the database in the readers' thread. Raises StoreError."""
        if not self._is_open:
            raise StoreError(f"the history database {self.path} is not open")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, lambda: ask(self._reader, *args, **kwargs))
        except sqlite3.Error as error:
            raise unusable(self.path, error) from error

    async def search(self, query: Query, *, limit: int, each: int) -> Findings:
        """Ask the index, for everything that was submitted. Raises NotFound, StoreError."""
        if not self._is_open:
            raise StoreError(f"the history database {self.path} is not open")
        if self.pending:
            self._writer.hasten()
        return await self._indexer.find(query, limit=limit, each=each, pending=self._number if self.pending else 0)

    def look_up(self, ask: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask for one indexed row in the caller's thread. Raises StoreError."""
        if not self._is_open:
            raise StoreError(f"the history database {self.path} is not open")
        try:
            return ask(self._inline_reader, *args, **kwargs)
        except sqlite3.Error as error:
            self.troubles.report("database", str(error))
            raise unusable(self.path, error) from error

    def _open(self) -> None:
        self._indexer = Indexer(self.path, text_bytes=self._search_text_bytes, disk=self._disk)
        self._indexer.make_room()
        self.troubles.on_trouble = self._indexer.make_room
        connection = open_database(self.path, disk=self._disk)
        self._connections.append(connection)
        with transaction(connection):
            self.epoch = begin_epoch(connection)
            drop_connections(connection)
            ensure_identity(connection)
        self._replay(connection)
        self._journal.open()
        self._reader = open_reader(self.path, disk=self._disk)
        self._inline_reader = open_reader(self.path, disk=self._disk)
        self._connections += [self._reader, self._inline_reader]
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        backlog = Backlog(self.pending, self._journal, self.troubles)
        self._writer = Writer(
            connection,
            self.path,
            epoch=self.epoch,
            backlog=backlog,
            upkeep=self._upkeep,
            on_commit=self._indexer.notify,
            background=self._background,
        )
        self._writer.start()
        self._indexer.start()
        self._is_open = True

    def _replay(self, connection: sqlite3.Connection) -> None:
        (self._number,) = connection.execute("SELECT value FROM meta WHERE name = 'applied'").fetchone()
        found, damage = read_journal(self._journal.paths)
        wanted = [each for each in found if each.number > self._number and not _is_of_connection(each)]
        if found:
            self._number = max(self._number, found[-1].number)
        for start in range(0, len(wanted), _REPLAY_OPERATIONS):
            take_in(connection, self.epoch, wanted[start : start + _REPLAY_OPERATIONS], self.troubles.refuse)
        for path, problem in damage.items():
            self.troubles.set_aside(path, problem)

    def _relieve(self) -> None:
        """Keep memory bounded: wait for a writer that works, else give up the oldest lines."""
        if not self.troubles.has_problem("database"):
            if self.pending.bytes <= 4 * self._memory_bytes:
                return
            self._writer.wait_for_room(_ROOM_SECONDS)
            if self.pending.bytes <= 4 * self._memory_bytes:
                return
            self.troubles.report("database", "it does not keep up with what is appended")
        self.troubles.lost += self.pending.shrink(self._memory_bytes * 3 // 4, self._describe_loss)

    def _describe_loss(self, newest: Append, first: int) -> bytes:
        return encode_loss(newest.time, first, newest.last, self.troubles.problem or "unknown")

    def _close_files(self) -> None:
        self._journal.close()
        while self._connections:
            self._connections.pop().close()
        self._lock.release()


def _is_of_connection(operation: Operation) -> bool:
    return isinstance(operation, Append | Drop) and operation.stream.startswith(CONNECTION_PREFIX)


class DatabaseLock:
    """One server per database: a file beside it that names its holder.

    Held from `acquire` to `release`, and let go by the system when the process dies.
    """

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}.lock")
        self._database = database
        self._fd: int | None = None

    def acquire(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot create the lock file {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise StoreInUse(
                f"the history database {self._database} is in use by another server (pid {holder}); "
                "stop it, or give this one another data directory",
                pid=holder,
            ) from error
        self._fd = fd
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass  # a full disk: the lock holds all the same, only nameless

    def release(self) -> None:
        # The file stays: removing it would let two servers lock two files of one name.
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
