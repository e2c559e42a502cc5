"""The reading half of the SQL: plain functions over a connection, for whichever thread owns it.

What is damaged never hides what is not: rows are checked one by one, and a notice stands in place of those that are
gone.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.store.base import SessionFilter, SessionRecord
from sandbox_agent.store.batches import DamagedRow, unpack_row
from sandbox_agent.store.entries import Page, lost_notice
from sandbox_agent.store.paging import Position
from sandbox_agent.store.records import DamagedRecord, decode_record

_ROW = "SELECT first, last, ended, body, checksum FROM batches"
_SESSIONS = """SELECT record, sessions.checksum, coalesce(last, 0), agent, session, alias, cwd, updated, is_ended
    FROM sessions LEFT JOIN streams ON streams.name = sessions.stream"""
_DAMAGED = "the database is damaged here"
_GONE = "they are no longer in the database"
SELECT_STREAM = (
    "SELECT id, max(last, coalesce((SELECT max(last) FROM batches WHERE stream = streams.id), 0)) FROM streams"
)
_NEVER = -1
"""No checksum is negative."""

_Row = tuple[int, int, float, bytes, int | None]


class Found(NamedTuple):
    """A session as the database has it. Where `is_damaged`, only what the columns say is known."""

    record: SessionRecord
    is_damaged: bool


def select_last(connection: sqlite3.Connection, stream: StreamKey) -> int:
    """The newest entry's sequence by either table: a number that was damaged must not be given out again."""
    found = connection.execute(f"{SELECT_STREAM} WHERE name = ?", (stream,)).fetchone()
    return int(found[1]) if found else 0


def fill_page(connection: sqlite3.Connection, stream: StreamKey, page: Page) -> int:
    """Add what the database has of a stream to a page, with a notice in place of each hole.

    Says how many rows were damaged. Raises sqlite3.Error when none can be read."""
    found = connection.execute("SELECT id, last FROM streams WHERE name = ?", (stream,)).fetchone()
    return 0 if found is None else _Filling(connection, page, *found).fill()


def select_updated(connection: sqlite3.Connection, key: SessionKey) -> float | None:
    found = connection.execute("SELECT updated FROM sessions WHERE agent = ? AND session = ?", key).fetchone()
    return float(found[0]) if found else None


def select_session(connection: sqlite3.Connection, key: SessionKey) -> Found | None:
    return next(iter(_select(connection, "WHERE agent = ? AND session = ?", key)), None)


def select_named(connection: sqlite3.Connection, name: str) -> list[Found]:
    return _select(connection, "WHERE session = ? OR alias = ?", (name, name))


def select_sessions(
    connection: sqlite3.Connection, matching: SessionFilter, after: Position | None, limit: int
) -> list[Found]:
    """Sessions beyond a position, newest first."""
    conditions: list[str] = []
    values: list[object] = []
    if matching.agent is not None:
        conditions.append("agent = ?")
        values.append(matching.agent)
    if matching.cwd is not None:
        conditions.append("cwd = ?")
        values.append(matching.cwd)
    if matching.is_ended is not None:
        conditions.append("is_ended = ?")
        values.append(matching.is_ended)
    if after is not None:
        conditions.append("(updated, agent, session) < (?, ?, ?)")
        values += after
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    order = "ORDER BY updated DESC, agent DESC, session DESC LIMIT ?"
    return _select(connection, where + order, (*values, limit))


def select_turn(connection: sqlite3.Connection, key: SessionKey, turn_id: str) -> tuple[bool, bytes | None]:
    found = connection.execute(
        "SELECT answer, checksum FROM turns WHERE agent = ? AND session = ? AND turn = ?", (*key, turn_id)
    ).fetchone()
    if found is None:
        return False, None
    answer, checksum = found
    if checksum is not None and zlib.crc32(answer or b"") != checksum:
        return True, None  # it has run, and must not run again; what it answered is gone
    return True, answer


class _Filling:
    """One page of one stream, whose newest committed entry is `newest`."""

    def __init__(self, connection: sqlite3.Connection, page: Page, stream: int, newest: int) -> None:
        self._connection = connection
        self._page = page
        self._stream = stream
        self._newest = newest
        self._damaged = 0
        self._whole = 0
        self._time = 0.0

    def fill(self) -> int:
        try:
            with closing(self._rows()) as rows:  # a full page leaves the rest: no question stays open
                self._add(rows)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            self._add(self._rows_one_by_one())  # a part of the file is ruined: perhaps not all of it is
            if not self._whole:
                raise
        return self._damaged

    def _rows(self) -> Generator[_Row, None, None]:
        rows = self._connection.execute(f"{_ROW} WHERE stream = ? AND last > ? ORDER BY last", self._place)
        with closing(rows):
            for row in rows:
                if not _is_plausible(row):
                    raise sqlite3.DatabaseError("a row has values of the wrong type")
                yield row

    def _rows_one_by_one(self) -> Iterator[_Row]:
        """By the index, which may be whole where the table is not."""
        places = self._connection.execute(
            "SELECT id, last FROM batches INDEXED BY batches_by_stream WHERE stream = ? AND last > ? ORDER BY last",
            self._place,
        ).fetchall()
        for row_id, last in places:
            try:
                row = self._connection.execute(f"{_ROW} WHERE id = ?", (row_id,)).fetchone()
            except sqlite3.DatabaseError:
                row = None
            is_there = row is not None and _is_plausible(row) and row[1] == last
            yield row if is_there else (self._page.after + 1, last, self._time, b"", _NEVER)

    @property
    def _place(self) -> tuple[int, int]:
        return self._stream, self._page.after

    def _add(self, rows: Iterator[_Row]) -> None:
        page = self._page
        for first, last, ended, body, checksum in rows:
            self._time = ended
            try:
                bodies = unpack_row(first, last, body, checksum)
            except DamagedRow:
                self._damaged += 1
                since = first if first <= last else page.after + 1  # nothing that it says need be true
                page.add(last, ended, "server", [lost_notice(since, last, _DAMAGED)])
            else:
                self._whole += 1
                if first > page.after + 1:
                    self._tell_hole(first - 1, ended)
                for sequence, (time, source, lines) in bodies:
                    page.add(sequence, time, source, lines)
            if page.is_full:
                return
        if self._newest > page.after and not page.is_full:
            self._tell_hole(self._newest, self._time)

    def _tell_hole(self, until: int, time: float) -> None:
        """Unless nothing before it is kept either: then retention has taken the oldest, as it should."""
        (before,) = self._connection.execute(
            "SELECT max(last) FROM batches WHERE stream = ? AND last <= ?", self._place
        ).fetchone()
        if before is not None:
            self._page.add(until, time, "server", [lost_notice(before + 1, until, _GONE)])


def _is_plausible(row: tuple[object, ...]) -> bool:
    return [type(value) for value in row[:4]] == [int, int, float, bytes]


def _select(connection: sqlite3.Connection, clause: str, values: tuple[object, ...]) -> list[Found]:
    return [_found(*row) for row in connection.execute(f"{_SESSIONS} {clause}", values)]


def _found(
    encoded: bytes,
    checksum: int | None,
    last: int,
    agent: AgentId,
    session: SessionId,
    alias: str | None,
    cwd: str | None,
    updated: float,
    is_ended: int,
) -> Found:
    try:
        record = decode_record(encoded, checksum)
        if record.key != (agent, session):
            raise DamagedRecord("it is another session's")
    except DamagedRecord:
        ended = updated if is_ended else None
        record = SessionRecord(agent=agent, session_id=session, alias=alias, cwd=cwd, updated=updated, ended=ended)
        return Found(record, is_damaged=True)
    record.event_count = last
    return Found(record, is_damaged=False)
