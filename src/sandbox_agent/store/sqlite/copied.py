"""A SQLite database as one side of a copy."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.errors import StoreError
from sandbox_agent.store.base import Retention
from sandbox_agent.store.batches import DamagedRow, Row, unpack_row
from sandbox_agent.store.copying import Turns
from sandbox_agent.store.records import decode_record
from sandbox_agent.store.sqlite.database import DatabaseLock
from sandbox_agent.store.sqlite.schema import open_database, transaction
from sandbox_agent.store.sqlite.store import SqliteStore


@asynccontextmanager
async def sqlite_side(path: Path, *, is_source: bool) -> AsyncIterator[SqliteSide]:
    """No server may use it. Raises StoreError, StoreInUse."""
    if is_source and not path.exists():  # noqa: ASYNC240 - nothing else runs beside a copy
        raise StoreError(f"there is no history database {path}")
    store = SqliteStore(path, retention=Retention(age=None, bytes=None), memory_bytes=1 << 25, search_text_bytes=0)
    await store.open()  # whatever a server left in the journal is taken in
    await store.close()
    lock = DatabaseLock(path)
    lock.acquire()
    try:
        with closing(open_database(path)) as connection:
            yield SqliteSide(path, connection)
    finally:
        lock.release()


class SqliteSide:
    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.name = str(path)
        self._connection = connection

    async def size(self) -> int:
        (size,) = self._connection.execute("SELECT coalesce(sum(length(body)), 0) FROM batches").fetchone()
        return int(size)

    async def sessions(self) -> list[SessionKey]:
        found = self._connection.execute("SELECT agent, session FROM sessions ORDER BY agent, session").fetchall()
        return [SessionKey(AgentId(agent), SessionId(session)) for agent, session in found]

    async def last(self, key: SessionKey) -> int:
        found = self._connection.execute("SELECT last FROM streams WHERE name = ?", (key.stream,)).fetchone()
        return int(found[0]) if found else 0

    async def rows(self, key: SessionKey, *, after: int, limit: int) -> list[Row]:
        found = self._connection.execute(
            "SELECT first, batches.last, began, ended, body, checksum"
            " FROM batches JOIN streams ON streams.id = batches.stream"
            " WHERE name = ? AND batches.last > ? ORDER BY batches.last LIMIT ?",
            (key.stream, after, limit),
        ).fetchall()
        for first, last, _, _, body, checksum in found:
            try:
                unpack_row(first, last, body, checksum)
            except DamagedRow as error:
                what = f"{self.name} is damaged in session {key.session!r} ({error})"
                raise StoreError(f"{what}: run `sandbox-agent store check --repair` first") from error
        return [Row(*values) for *values, _ in found]

    async def record(self, key: SessionKey) -> bytes | None:
        found = self._connection.execute(
            "SELECT record, checksum FROM sessions WHERE agent = ? AND session = ?", key
        ).fetchone()
        if found is None:
            return None
        decode_record(*found)
        return bytes(found[0])

    async def turns(self, key: SessionKey) -> Turns:
        return self._connection.execute(
            "SELECT turn, answer FROM turns WHERE agent = ? AND session = ? ORDER BY turn", key
        ).fetchall()

    async def add_rows(self, key: SessionKey, rows: list[Row]) -> None:
        with transaction(self._connection):
            stream = self._stream(key)
            self._connection.executemany(
                "INSERT INTO batches (stream, first, last, began, ended, epoch, body, checksum)"
                " VALUES (?, ?, ?, ?, ?, (SELECT value FROM meta WHERE name = 'epoch'), ?, ?)",
                [(stream, row.first, row.last, row.began, row.ended, row.body, row.checksum) for row in rows],
            )
            self._connection.execute("UPDATE streams SET last = ? WHERE id = ?", (rows[-1].last, stream))

    async def finish(self, key: SessionKey, record: bytes, turns: Turns, last: int) -> None:
        known = decode_record(record, None)
        with transaction(self._connection):
            self._connection.execute("UPDATE streams SET last = ? WHERE id = ?", (last, self._stream(key)))
            self._connection.execute(
                "INSERT OR REPLACE INTO sessions"
                " (agent, session, stream, alias, cwd, updated, is_ended, record, checksum)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *key, key.stream, known.alias, known.cwd, known.updated, known.ended is not None, record,
                    zlib.crc32(record),
                ),
            )  # fmt: skip
            self._connection.executemany(
                "INSERT OR REPLACE INTO turns (agent, session, turn, answer, checksum) VALUES (?, ?, ?, ?, ?)",
                [(*key, turn, answer, zlib.crc32(answer or b"")) for turn, answer in turns],
            )

    def _stream(self, key: SessionKey) -> int:
        self._connection.execute("INSERT OR IGNORE INTO streams (name) VALUES (?)", (key.stream,))
        (stream,) = self._connection.execute("SELECT id FROM streams WHERE name = ?", (key.stream,)).fetchone()
        return int(stream)
