"""The SQL over the tables of `schema`: taking operations in, answering questions, clearing out.

Plain functions over a connection, for whichever thread owns it. Those that write run inside a transaction that the
caller opens.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing

import msgspec

from sandbox_agent.core.ids import SessionKey, StreamKey
from sandbox_agent.store.base import SessionFilter, SessionRecord
from sandbox_agent.store.entries import Page
from sandbox_agent.store.paging import Position
from sandbox_agent.store.sqlite.batches import encode_loss, pack_rows, unpack_row
from sandbox_agent.store.sqlite.operations import Append, DeleteSession, Drop, Operation, PutSession, PutTurn

_SESSIONS = "SELECT record, coalesce(last, 0) FROM sessions LEFT JOIN streams ON streams.name = sessions.stream"
decode_record = msgspec.json.Decoder(SessionRecord).decode
encode_record = msgspec.json.Encoder().encode
_log = logging.getLogger("sandbox_agent.store")


class StaleEpochError(Exception):
    """Somebody else has taken the database over."""


def apply_operations(connection: sqlite3.Connection, epoch: int, operations: Sequence[Operation]) -> None:
    """Take in those operations that are not in the database yet. Raises StaleEpochError."""
    state = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    if state["epoch"] != epoch:
        raise StaleEpochError(
            f"the database was taken over by another server (epoch {state['epoch']}, ours is {epoch})"
        )
    appends: dict[StreamKey, list[Append]] = {}
    applied = state["applied"]
    for operation in operations:
        if operation.number <= state["applied"]:
            continue
        applied = operation.number
        match operation:
            case Append():
                appends.setdefault(operation.stream, []).append(operation)
            case Drop():
                appends.pop(operation.stream, None)
                drop_stream(connection, operation.stream)
            case PutSession():
                _put_session(connection, operation)
            case PutTurn():
                _put_turn(connection, operation)
            case DeleteSession():
                appends.pop(operation.key.stream, None)
                _delete_session(connection, operation.key)
    for stream, batch in appends.items():
        _insert_batches(connection, epoch, stream, batch)
    connection.execute("UPDATE meta SET value = ? WHERE name = 'applied'", (applied,))


def drop_stream(connection: sqlite3.Connection, stream: str) -> None:
    """Take the name away at once; `purge_dropped` removes the batches in small steps."""
    connection.execute("UPDATE streams SET name = 'dropped:' || id WHERE name = ?", (stream,))


def drop_connections(connection: sqlite3.Connection) -> None:
    """Connections do not outlive the server, nor do their streams."""
    connection.execute(
        "UPDATE streams SET name = 'dropped:' || id WHERE name >= 'connection:' AND name < 'connection;'"
    )


def purge_dropped(connection: sqlite3.Connection, max_rows: int) -> int:
    """Remove some batches of dropped streams, and say how many rows went. 0: nothing is left."""
    found = connection.execute(
        "SELECT id FROM streams WHERE name >= 'dropped:' AND name < 'dropped;' LIMIT 1"
    ).fetchone()
    if found is None:
        return 0
    removed = connection.execute(
        "DELETE FROM batches WHERE id IN (SELECT id FROM batches WHERE stream = ? LIMIT ?)",
        (found[0], max_rows),
    ).rowcount
    if removed < max_rows:
        removed += connection.execute("DELETE FROM streams WHERE id = ?", found).rowcount
    return removed


def remove_aged(connection: sqlite3.Connection, before: float, max_rows: int) -> int:
    """Remove batches that ended before a time, oldest first, and say how many."""
    oldest = connection.execute("SELECT id, ended FROM batches ORDER BY id LIMIT ?", (max_rows,)).fetchall()
    return _remove_batches(connection, [id_ for id_, ended in oldest if ended < before])


def remove_oldest(connection: sqlite3.Connection, max_rows: int) -> int:
    """Remove the oldest batches of the ended session that rested longest, or else the oldest of all."""
    ended = connection.execute(
        """SELECT batches.id FROM batches WHERE stream = (
            SELECT streams.id FROM sessions JOIN streams ON streams.name = sessions.stream
            WHERE is_ended = 1 AND EXISTS (SELECT 1 FROM batches WHERE batches.stream = streams.id)
            ORDER BY updated LIMIT 1
        ) ORDER BY last LIMIT ?""",
        (max_rows,),
    ).fetchall()
    oldest = ended or connection.execute("SELECT id FROM batches ORDER BY id LIMIT ?", (max_rows,)).fetchall()
    return _remove_batches(connection, [id_ for (id_,) in oldest])


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


def _remove_batches(connection: sqlite3.Connection, ids: list[int]) -> int:
    connection.executemany("DELETE FROM batches WHERE id = ?", [(id_,) for id_ in ids])
    return len(ids)


def _insert_batches(connection: sqlite3.Connection, epoch: int, stream: StreamKey, appends: list[Append]) -> None:
    connection.execute("INSERT OR IGNORE INTO streams (name) VALUES (?)", (stream,))
    stream_id, last = connection.execute("SELECT id, last FROM streams WHERE name = ?", (stream,)).fetchone()
    appends = _close_holes(appends, last)
    if not appends:
        return
    connection.executemany(
        "INSERT INTO batches (stream, first, last, began, ended, epoch, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((stream_id, row.first, row.last, row.began, row.ended, epoch, row.body) for row in pack_rows(appends)),
    )
    connection.execute("UPDATE streams SET last = ? WHERE id = ?", (appends[-1].last, stream_id))


def _close_holes(appends: list[Append], last: int) -> list[Append]:
    """Put a notice where a crash in hard times has taken lines that were in memory only."""
    closed: list[Append] = []
    for append in appends:
        if append.first <= last:
            _log.error("%s has entry %d already: a second one is lost", append.stream, append.first)
            continue
        if append.first > last + 1:
            first, until = last + 1, append.first - 1
            body = encode_loss(append.time, first, until, "the server died before it could write them")
            closed.append(Append(append.number, append.stream, first, until, append.time, body, is_loss=True))
        closed.append(append)
        last = append.last
    return closed


def _put_session(connection: sqlite3.Connection, operation: PutSession) -> None:
    record = decode_record(operation.record)
    connection.execute(
        "INSERT OR REPLACE INTO sessions (agent, session, stream, alias, cwd, updated, is_ended, record)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.agent, record.session_id, record.key.stream, record.alias, record.cwd, record.updated,
            record.ended is not None, operation.record,
        ),
    )  # fmt: skip


def _put_turn(connection: sqlite3.Connection, operation: PutTurn) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO turns (agent, session, turn, answer) VALUES (?, ?, ?, ?)",
        (*operation.key, operation.turn_id, operation.answer),
    )


def _delete_session(connection: sqlite3.Connection, key: SessionKey) -> None:
    connection.execute("DELETE FROM sessions WHERE agent = ? AND session = ?", key)
    connection.execute("DELETE FROM turns WHERE agent = ? AND session = ?", key)
    drop_stream(connection, key.stream)


def _select(connection: sqlite3.Connection, clause: str, values: tuple[object, ...]) -> list[SessionRecord]:
    records = []
    for encoded, last in connection.execute(f"{_SESSIONS} {clause}", values):
        record = decode_record(encoded)
        record.event_count = last
        records.append(record)
    return records
