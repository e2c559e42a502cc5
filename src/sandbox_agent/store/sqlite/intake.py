"""The writing half of the SQL: taking operations in, and clearing out what is no longer wanted."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Sequence

import msgspec

from sandbox_agent.core.ids import SessionKey, StreamKey
from sandbox_agent.store.base import SessionRecord
from sandbox_agent.store.batches import encode_loss, pack_rows
from sandbox_agent.store.operations import Append, DeleteSession, Drop, Operation, PutSession, PutTurn
from sandbox_agent.store.records import DamagedRecord, decode_record
from sandbox_agent.store.sqlite.reading import SELECT_STREAM
from sandbox_agent.store.sqlite.schema import transaction

Refuse = Callable[[Operation, Exception], None]
"""Keeps an operation that cannot be taken in somewhere else. Raises OSError when it cannot do even that."""

_MISSED = "the server died before it could write them, or its journal was damaged"


class StaleEpochError(Exception):
    """Somebody else has taken the database over."""


def take_in(connection: sqlite3.Connection, epoch: int, operations: Sequence[Operation], refuse: Refuse) -> None:
    """Take in, in a transaction, those operations that are not in the database yet.

    One that cannot be taken in, whatever the reason, is handed to `refuse`, and the others are taken in without it.
    Raises StaleEpochError, and sqlite3.Error or OSError when the disk is to blame."""
    try:
        with transaction(connection):
            _apply(connection, epoch, operations)
    except Exception as error:
        if _blames_the_disk(error):
            raise
        with transaction(connection):
            _apply_one_by_one(connection, epoch, operations, refuse)


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
    """Remove batches that ended before a time, oldest first, and say how many.

    What stands before an aged batch is aged too, whatever the clock said when it was written: no hole is left."""
    oldest = connection.execute("SELECT id, ended FROM batches ORDER BY id LIMIT ?", (max_rows,)).fetchall()
    aged = max((place for place, (_, ended) in enumerate(oldest, 1) if ended < before), default=0)
    return _remove_batches(connection, [id_ for id_, _ in oldest[:aged]])


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


def _blames_the_disk(error: Exception) -> bool:
    """Whether another try may succeed: the operation itself is not at fault."""
    kinds = (sqlite3.DatabaseError, sqlite3.OperationalError, sqlite3.InternalError)  # but not their other children
    return isinstance(error, OSError | MemoryError | StaleEpochError) or type(error) in kinds


def _apply_one_by_one(
    connection: sqlite3.Connection, epoch: int, operations: Sequence[Operation], refuse: Refuse
) -> None:
    for operation in operations:
        connection.execute("SAVEPOINT one")
        try:
            _apply(connection, epoch, [operation])
        except Exception as error:
            if _blames_the_disk(error):
                raise
            connection.execute("ROLLBACK TO one")
            refuse(operation, error)
        connection.execute("RELEASE one")
    if operations:
        _set_applied(connection, operations[-1].number)


def _apply(connection: sqlite3.Connection, epoch: int, operations: Sequence[Operation]) -> None:
    state = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    if "epoch" not in state or "applied" not in state:
        raise sqlite3.DatabaseError("the table meta has lost its rows")
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
                _drop_stream(connection, operation.stream)
            case PutSession():
                _put_session(connection, operation)
            case PutTurn():
                _put_turn(connection, operation)
            case DeleteSession():
                appends.pop(operation.key.stream, None)
                _delete_session(connection, operation.key)
    for stream, batch in appends.items():
        _insert_batches(connection, epoch, stream, batch)
    _set_applied(connection, applied)


def _set_applied(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("UPDATE meta SET value = max(value, ?) WHERE name = 'applied'", (number,))


def _drop_stream(connection: sqlite3.Connection, stream: str) -> None:
    """Take the name away at once; `purge_dropped` removes the batches in small steps."""
    connection.execute("UPDATE streams SET name = 'dropped:' || id WHERE name = ?", (stream,))


def _remove_batches(connection: sqlite3.Connection, ids: list[int]) -> int:
    connection.executemany("DELETE FROM batches WHERE id = ?", [(id_,) for id_ in ids])
    return len(ids)


def _insert_batches(connection: sqlite3.Connection, epoch: int, stream: StreamKey, appends: list[Append]) -> None:
    stream_id, last = _find_stream(connection, stream)
    begins = _beginning(appends)
    if begins > 0 or (begins == 0 and last):
        # A stream of this name was dropped, and damage has taken what said so: this is another.
        _drop_stream(connection, stream)
        appends = appends[begins:]
        stream_id, last = _find_stream(connection, stream)
    appends = _close_holes(appends, last)
    if not appends:
        return
    connection.executemany(
        "INSERT INTO batches (stream, first, last, began, ended, epoch, body, checksum)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (stream_id, row.first, row.last, row.began, row.ended, epoch, row.body, row.checksum)
            for row in pack_rows(appends)
        ),
    )
    connection.execute("UPDATE streams SET last = ? WHERE id = ?", (appends[-1].last, stream_id))


def _beginning(appends: list[Append]) -> int:
    """The place of the newest that begins a stream; -1 where all go on with one."""
    if 1 not in [append.first for append in appends]:
        return -1
    return max((place for place, append in enumerate(appends) if append.first == 1 and not append.is_loss), default=-1)


def _find_stream(connection: sqlite3.Connection, stream: StreamKey) -> tuple[int, int]:
    """Its id, made if need be, and its newest entry."""
    connection.execute("INSERT OR IGNORE INTO streams (name) VALUES (?)", (stream,))
    stream_id, last = connection.execute(f"{SELECT_STREAM} WHERE name = ?", (stream,)).fetchone()
    return stream_id, last


def _close_holes(appends: list[Append], last: int) -> list[Append]:
    """Put a notice where a crash in hard times, or damage to the journal, has taken lines."""
    closed: list[Append] = []
    for append in appends:
        if append.is_loss and append.first <= last:
            if append.last <= last:
                continue  # what it says is lost is here after all
            body = encode_loss(append.time, last + 1, append.last, _MISSED)
            append = msgspec.structs.replace(append, first=last + 1, body=body)
        if append.first <= last:
            raise ValueError(f"{append.stream} has entry {append.first} already, its newest is {last}")
        if append.first > last + 1:
            first, until = last + 1, append.first - 1
            body = encode_loss(append.time, first, until, _MISSED)
            closed.append(Append(append.number, append.stream, first, until, append.time, body, is_loss=True))
        closed.append(append)
        last = append.last
    return closed


def _put_session(connection: sqlite3.Connection, operation: PutSession) -> None:
    record = decode_record(operation.record, None)
    _forget_namesake(connection, record)
    connection.execute(
        "INSERT OR REPLACE INTO sessions (agent, session, stream, alias, cwd, updated, is_ended, record, checksum)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.agent, record.session_id, record.key.stream, record.alias, record.cwd, record.updated,
            record.ended is not None, operation.record, zlib.crc32(operation.record),
        ),
    )  # fmt: skip


def _forget_namesake(connection: sqlite3.Connection, record: SessionRecord) -> None:
    """Turns of a session that had this id, was deleted, and is still here because damage has taken that."""
    found = connection.execute("SELECT record FROM sessions WHERE agent = ? AND session = ?", record.key).fetchone()
    try:
        created = decode_record(found[0], None).created if found else record.created
    except DamagedRecord:
        return  # nothing can be said
    if created != record.created:
        connection.execute("DELETE FROM turns WHERE agent = ? AND session = ?", record.key)


def _put_turn(connection: sqlite3.Connection, operation: PutTurn) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO turns (agent, session, turn, answer, checksum) VALUES (?, ?, ?, ?, ?)",
        (*operation.key, operation.turn_id, operation.answer, zlib.crc32(operation.answer or b"")),
    )


def _delete_session(connection: sqlite3.Connection, key: SessionKey) -> None:
    connection.execute("DELETE FROM sessions WHERE agent = ? AND session = ?", key)
    connection.execute("DELETE FROM turns WHERE agent = ? AND session = ?", key)
    _drop_stream(connection, key.stream)
