"""The reading half of the SQL: plain functions over a connection, for whichever thread owns it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec

from sandbox_agent.core.ids import SessionKey, StreamKey
from sandbox_agent.store.base import SessionFilter, SessionRecord
from sandbox_agent.store.paging import Position
from sandbox_agent.store.sqlite.batches import Page, unpack_row

_SESSIONS = "SELECT record, coalesce(last, 0) FROM sessions LEFT JOIN streams ON streams.name = sessions.stream"
decode_record = msgspec.json.Decoder(SessionRecord).decode
encode_record = msgspec.json.Encoder().encode


def select_last(connection: sqlite3.Connection, stream: StreamKey) -> int:
    found = connection.execute("SELECT last FROM streams WHERE name = ?", (stream,)).fetchone()
    return int(found[0]) if found else 0


def fill_page(connection: sqlite3.Connection, stream: StreamKey, page: Page) -> None:
    """Add what the database has of a stream to a page."""
    rows = connection.execute(
        "SELECT last, body FROM batches WHERE stream = (SELECT id FROM streams WHERE name = ?) AND last > ?"
        " ORDER BY last",
        (stream, page.after),
    )
    with closing(rows):
        for last, body in rows:
            for first, (time, source, lines) in unpack_row(last, body):
                page.add(first, time, source, lines)
                if page.is_full:
                    return


def select_updated(connection: sqlite3.Connection, key: SessionKey) -> float | None:
    found = connection.execute("SELECT updated FROM sessions WHERE agent = ? AND session = ?", key).fetchone()
    return float(found[0]) if found else None


def select_session(connection: sqlite3.Connection, key: SessionKey) -> SessionRecord | None:
    return next(iter(_select(connection, "WHERE agent = ? AND session = ?", key)), None)


def select_named(connection: sqlite3.Connection, name: str) -> list[SessionRecord]:
    return _select(connection, "WHERE session = ? OR alias = ?", (name, name))


def select_sessions(
    connection: sqlite3.Connection, matching: SessionFilter, after: Position | None, limit: int
) -> list[SessionRecord]:
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
        "SELECT answer FROM turns WHERE agent = ? AND session = ? AND turn = ?", (*key, turn_id)
    ).fetchone()
    return (True, found[0]) if found else (False, None)


def _select(connection: sqlite3.Connection, clause: str, values: tuple[object, ...]) -> list[SessionRecord]:
    records = []
    for encoded, last in connection.execute(f"{_SESSIONS} {clause}", values):
        record = decode_record(encoded)
        record.event_count = last
        records.append(record)
    return records
