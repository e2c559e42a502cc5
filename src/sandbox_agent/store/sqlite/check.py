"""Going over a database that no server need have open: what is damaged, and making the best of it.

A check changes nothing. A repair takes the lock, sets every damaged value aside (`FILE.refused`), and puts in its place
what says that it is gone. A file whose structure is ruined is rebuilt from what can be read, and kept as it was.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.errors import StoreError
from sandbox_agent.store.batches import DamagedRow, Row, encode_loss, pack_rows, unpack_row
from sandbox_agent.store.operations import Append
from sandbox_agent.store.records import DamagedRecord, decode_record, encode_record
from sandbox_agent.store.sqlite.database import DatabaseLock
from sandbox_agent.store.sqlite.journal import journal_paths, read_journal
from sandbox_agent.store.sqlite.reading import select_session
from sandbox_agent.store.sqlite.rebuilding import rebuild
from sandbox_agent.store.sqlite.schema import open_database, open_reader, transaction, unusable
from sandbox_agent.store.sqlite.troubles import Troubles

_REPAIRED = "found damaged by a check"
_GONE = "found missing by a check"


class Problem(msgspec.Struct, frozen=True):
    """`place` is a part of the database or a file; `is_repaired` is false after a mere check."""

    place: str
    detail: str
    is_repaired: bool = False


class Report(msgspec.Struct, kw_only=True, rename="camel"):
    path: str
    batches: int = 0
    sessions: int = 0
    turns: int = 0
    journaled: int = 0
    """Operations in the journal; the next server takes in those that the database does not have."""
    problems: list[Problem] = []
    set_aside: list[str] = []
    """Files with what could not be used, from now and from before."""


def check_database(path: Path) -> Report:
    """Raises StoreError when the file cannot be opened at all."""
    if not path.is_file():
        raise StoreError(f"there is no history database {path}; name one with --data-dir or --store")
    with closing(open_reader(path)) as connection:
        return _Check(path, connection, is_repair=False).run()


def repair_database(path: Path) -> Report:
    """Raises StoreError when the file cannot be opened at all, or a server has it open."""
    if not path.is_file():
        raise StoreError(f"there is no history database {path}; name one with --data-dir or --store")
    lock = DatabaseLock(path)
    lock.acquire()
    try:
        return _repair(path)
    except sqlite3.Error as error:
        raise unusable(path, error) from error
    finally:
        lock.release()


def _repair(path: Path) -> Report:
    with closing(open_database(path)) as connection:
        faults = list(_structural_faults(connection))
        if not faults:
            return _Check(path, connection, is_repair=True).run()
    rebuilt = rebuild(path)
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists():  # a log that is left behind would be taken for the new file's
            Troubles(path).set_aside(file, faults[0])
    rebuilt.rename(path)
    with closing(open_database(path)) as connection:
        report = _Check(path, connection, is_repair=True).run()
    report.problems = [Problem("file", fault, is_repaired=True) for fault in faults] + report.problems
    return report


def _structural_faults(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for (line,) in connection.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                yield str(line)
    except sqlite3.DatabaseError as error:
        yield str(error)


class _Check:
    def __init__(self, path: Path, connection: sqlite3.Connection, *, is_repair: bool) -> None:
        self._path = path
        self._connection = connection
        self._is_repair = is_repair
        self._troubles = Troubles(path)
        self._report = Report(path=str(path), problems=[])
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        checksum = "checksum" if version > 1 else "NULL"
        batch = f"SELECT first, last, ended, CAST(body AS BLOB), {checksum} FROM batches WHERE id = ?"  # noqa: S608
        records = f"SELECT agent, session, CAST(record AS BLOB), {checksum} FROM sessions"  # noqa: S608
        turns = f"SELECT agent, session, turn, CAST(answer AS BLOB), {checksum} FROM turns"  # noqa: S608
        self._select_batch, self._select_records, self._select_turns = batch, records, turns

    def run(self) -> Report:
        if not self._is_repair:
            for fault in _structural_faults(self._connection):
                self._report.problems.append(Problem("file", fault))
        for part in (self._check_streams, self._check_sessions, self._check_turns):
            try:
                part()
            except sqlite3.DatabaseError as error:
                self._report.problems.append(Problem("file", str(error)))
        self._check_journal()
        self._report.set_aside = self._troubles.aside
        return self._report

    def _found(self, place: str, detail: str) -> None:
        self._report.problems.append(Problem(place, detail, is_repaired=self._is_repair))

    def _check_streams(self) -> None:
        streams = self._connection.execute("SELECT id, name, last FROM streams ORDER BY id").fetchall()
        for stream, name, newest in streams:
            if not isinstance(name, str) or not isinstance(newest, int):
                self._report.problems.append(Problem("file", f"stream {stream} has lost its name or its end"))
            elif not name.startswith("dropped:"):
                self._check_stream(stream, name, newest)

    def _check_stream(self, stream: int, name: str, newest: int) -> None:
        ids = self._connection.execute("SELECT id FROM batches WHERE stream = ? ORDER BY last", (stream,)).fetchall()
        expected: int | None = None
        for (row_id,) in ids:
            first, last, ended, body, checksum = self._connection.execute(self._select_batch, (row_id,)).fetchone()
            try:
                unpack_row(first, last, body, checksum)
            except DamagedRow as error:
                if not isinstance(first, int) or not isinstance(last, int):
                    self._report.problems.append(Problem(name, f"batch {row_id} has lost its numbers"))
                    continue
                first = expected or min(first, last)  # what it says itself need not be true
                self._found(name, f"entries {first} to {last} are damaged: {error}")
                self._replace_batch(row_id, _loss(first, last, ended, _REPAIRED), body)
            if expected is not None and first > expected:
                self._fill_hole(stream, name, expected, first - 1)
            self._report.batches += 1
            expected = last + 1
        if expected is not None and newest >= expected:
            self._fill_hole(stream, name, expected, newest)

    def _fill_hole(self, stream: int, name: str, first: int, last: int) -> None:
        self._found(name, f"entries {first} to {last} are missing")
        if self._is_repair:
            row = _loss(first, last, time.time(), _GONE)
            with transaction(self._connection):
                self._connection.execute(
                    "INSERT INTO batches (stream, first, last, began, ended, epoch, body, checksum)"
                    " VALUES (?, ?, ?, ?, ?, 0, ?, ?)",
                    (stream, row.first, row.last, row.began, row.ended, row.body, row.checksum),
                )

    def _replace_batch(self, row_id: int, row: Row, damaged: bytes | None) -> None:
        if self._is_repair:
            self._troubles.refuse_bytes(f"batch {row_id}, damaged", damaged or b"")
            with transaction(self._connection):
                self._connection.execute(
                    "UPDATE batches SET first = ?, body = ?, checksum = ? WHERE id = ?",
                    (row.first, row.body, row.checksum, row_id),
                )

    def _check_sessions(self) -> None:
        rows = self._connection.execute(self._select_records).fetchall()
        for agent, session, record, checksum in rows:
            self._report.sessions += 1
            try:
                decode_record(record, checksum)
            except DamagedRecord as error:
                self._found(f"session {session} of {agent}", f"the record is damaged: {error}")
                self._restore_record(agent, session, record)

    def _restore_record(self, agent: AgentId, session: SessionId, damaged: bytes | None) -> None:
        """Make a record of what the columns beside it say."""
        found = select_session(self._connection, SessionKey(agent, session)) if self._is_repair else None
        if found is not None:
            self._troubles.refuse_bytes(f"record of session {session} of {agent}, damaged", damaged or b"")
            encoded, _ = encode_record(found.record)
            with transaction(self._connection):
                self._connection.execute(
                    "UPDATE sessions SET record = ?, checksum = ? WHERE agent = ? AND session = ?",
                    (encoded, zlib.crc32(encoded), agent, session),
                )

    def _check_turns(self) -> None:
        rows = self._connection.execute(self._select_turns).fetchall()
        for agent, session, turn, answer, checksum in rows:
            self._report.turns += 1
            if checksum is None or zlib.crc32(answer or b"") == checksum:
                continue
            self._found(f"session {session} of {agent}", f"the answer of turn {turn} is damaged")
            if self._is_repair:
                self._troubles.refuse_bytes(f"turn {turn} of session {session} of {agent}, damaged", answer or b"")
                with transaction(self._connection):
                    self._connection.execute(
                        "UPDATE turns SET answer = NULL, checksum = 0 WHERE agent = ? AND session = ? AND turn = ?",
                        (agent, session, turn),
                    )

    def _check_journal(self) -> None:
        found = read_journal(journal_paths(self._path))
        self._report.journaled = len(found.operations)
        for path, detail in found.damage.items():
            detail = f"{detail}; the next start uses the rest, and keeps the file"
            self._report.problems.append(Problem(str(path), detail))


def _loss(first: int, last: int, at: float, reason: str) -> Row:
    body = encode_loss(at, first, last, reason)
    return next(pack_rows([Append(0, StreamKey(""), first, last, at, body, is_loss=True)]))
