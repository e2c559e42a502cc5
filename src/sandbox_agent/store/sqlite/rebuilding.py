"""A new database from what can still be read of one whose structure is ruined."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sandbox_agent.store.sqlite.schema import open_database, transaction

_BY_ROWID = {
    "streams": "id, name, last",
    "batches": "id, stream, first, last, began, ended, epoch, body, checksum",
    "sessions": "agent, session, stream, alias, cwd, updated, is_ended, record, checksum",
}
_BY_KEY = {"meta": ("name, value", "name"), "turns": ("agent, session, turn, answer, checksum", "agent, session, turn")}


def rebuild(path: Path) -> Path:
    """Write `FILE.rebuilt` and leave FILE as it is. Raises sqlite3.Error, StoreError."""
    target = path.with_name(f"{path.name}.rebuilt")
    target.unlink(missing_ok=True)
    with closing(open_database(path)) as old, closing(open_database(target)) as new:
        with transaction(new):
            for table, columns in _BY_ROWID.items():
                _copy(new, table, columns, _by_rowid(old, table, columns))
            for table, (columns, key) in _BY_KEY.items():
                _copy(new, table, columns, _from_both_ends(old, table, columns, key))
            _name_streams(new)
        for connection in (old, new):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return target


def _copy(new: sqlite3.Connection, table: str, columns: str, rows: Iterator[tuple[object, ...]]) -> None:
    marks = ", ".join("?" for _ in columns.split(","))
    for row in rows:
        try:
            new.execute(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", row)  # noqa: S608
        except (sqlite3.IntegrityError, sqlite3.InterfaceError):
            continue  # values that no row of ours can have: the page was ruined, and read all the same


def _by_rowid(old: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[object, ...]]:
    select = f"SELECT {columns} FROM {table}"  # noqa: S608
    ranges = [(1, _newest_rowid(old, table))]
    while ranges:
        low, high = ranges.pop()
        try:
            yield from old.execute(f"{select} WHERE rowid BETWEEN ? AND ? ORDER BY rowid", (low, high)).fetchall()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]


def _newest_rowid(old: sqlite3.Connection, table: str) -> int:
    found = 0
    newest = f"SELECT max(rowid) FROM {table}"  # noqa: S608
    counted = f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'"  # noqa: S608
    for question in (newest, counted):
        try:
            found = max(found, *(int(row[0] or 0) for row in old.execute(question)), 0)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            continue
    return found or 1 << 20


def _from_both_ends(old: sqlite3.Connection, table: str, columns: str, key: str) -> Iterator[tuple[object, ...]]:
    descending = ", ".join(f"{column} DESC" for column in key.split(", "))
    for order in (key, descending):
        rows = old.execute(f"SELECT {columns} FROM {table} ORDER BY {order}")  # noqa: S608
        try:
            yield from rows
            return
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            continue


def _name_streams(new: sqlite3.Connection) -> None:
    """Batches whose stream has lost its name get one, and no stream ends before its last batch."""
    new.execute(
        "INSERT INTO streams (id, name) SELECT DISTINCT stream, 'unnamed:' || stream FROM batches"
        " WHERE stream NOT IN (SELECT id FROM streams)"
    )
    new.execute(
        "UPDATE streams SET last = max(last, (SELECT coalesce(max(last), 0) FROM batches WHERE stream = streams.id))"
    )
