"""Shared words of the store's tests."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.store import Entry, Retention, SessionFilter, SessionRecord, SqliteStore, Store
from sandbox_agent.store.membership import Membership
from sandbox_agent.store.postgres.store import PostgresStore
from support.waiting import until

STREAM = StreamKey("session:mock:one")
KEY = SessionKey(AgentId("mock"), SessionId("one"))
ANY = SessionFilter()
KEEP_ALL = Retention(age=None, bytes=None)


def session(name: str = "one", *, agent: str = "mock", updated: float = 1.0, **fields: object) -> SessionRecord:
    record = SessionRecord(agent=AgentId(agent), session_id=SessionId(name), updated=updated)
    for field, value in fields.items():
        setattr(record, field, value)
    return record


def sqlite_store(
    path: Path,
    *,
    memory_bytes: int = 32 << 20,
    search_text_bytes: int = 1 << 30,
    retention: Retention = KEEP_ALL,
    **more: Any,
) -> SqliteStore:
    return SqliteStore(
        path, memory_bytes=memory_bytes, search_text_bytes=search_text_bytes, retention=retention, **more
    )


def postgres_store(
    url: str, data_dir: Path, *, retention: Retention = KEEP_ALL, membership: Membership | None = None
) -> PostgresStore:
    kept = membership or Membership()
    return PostgresStore(url, data_dir, memory_bytes=32 << 20, retention=retention, membership=kept)


def numbered(count: int, *, start: int = 1) -> list[bytes]:
    return [b'{"n":%d}' % number for number in range(start, start + count)]


async def read_all(store: Store, stream: StreamKey = STREAM, *, after: int = 0, limit: int = 1000) -> list[Entry]:
    entries: list[Entry] = []
    while page := await store.read(stream, after=after, limit=limit):
        entries += page
        after = page[-1].sequence
    return entries


async def lines_of(store: Store, stream: StreamKey = STREAM) -> list[bytes]:
    return [entry.envelope for entry in await read_all(store, stream)]


async def committed(store: Store) -> None:
    await until(lambda: store.backlog() == 0)


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    """Look into a database from outside."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()
