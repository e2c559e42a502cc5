"""The reading half of the SQL. Everything that it finds is committed."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.store.base import SessionFilter, SessionRecord
from sandbox_agent.store.batches import DamagedRow, unpack_row
from sandbox_agent.store.entries import Page, lost_notice
from sandbox_agent.store.paging import Position
from sandbox_agent.store.postgres.connecting import Connection
from sandbox_agent.store.postgres.names import read_name, spell
from sandbox_agent.store.records import DamagedRecord, decode_record

_ROWS = 8
"""Rows of a history that are fetched at once: each has up to a quarter of a MiB."""
_SESSIONS = (
    "SELECT record, sessions.checksum, coalesce(streams.last, 0) AS last, streams.owner,"
    " agent, session, alias, cwd, updated, is_ended"
    " FROM sandbox_agent.sessions AS sessions"
    " LEFT JOIN sandbox_agent.streams AS streams ON streams.stream = sessions.stream"
)


class Found(NamedTuple):
    """A session as the database has it. Where `is_damaged`, only what the columns say is known."""

    record: SessionRecord
    is_damaged: bool


async def select_last(connection: Connection, stream: StreamKey) -> int:
    return (await connection.fetchval("SELECT last FROM sandbox_agent.streams WHERE stream = $1", spell(stream))) or 0


async def fill_page(connection: Connection, stream: StreamKey, page: Page) -> int:
    """Add what there is of a stream to a page, with a notice in place of what is damaged; says how many rows are."""
    damaged = 0
    while not page.is_full:
        rows = await connection.fetch(
            "SELECT first, last, ended, body, checksum FROM sandbox_agent.batches"
            " WHERE stream = $1 AND last > $2 ORDER BY last LIMIT $3",
            spell(stream),
            page.after,
            _ROWS,
        )
        for first, last, ended, body, checksum in rows:
            try:
                bodies = unpack_row(first, last, body, checksum)
            except DamagedRow:
                damaged += 1
                page.add(last, ended, "server", [lost_notice(first, last, "the database is damaged here")])
                continue
            for sequence, (time, source, lines) in bodies:
                page.add(sequence, time, source, lines)
        if len(rows) < _ROWS:
            break
    return damaged


async def select_session(connection: Connection, key: SessionKey) -> Found | None:
    found = await _select(connection, "WHERE agent = $1 AND session = $2", spell(key.agent), spell(key.session))
    return found[0] if found else None


async def select_named(connection: Connection, name: str) -> list[Found]:
    return await _select(connection, "WHERE session = $1 OR alias = $1", spell(name))


async def select_sessions(
    connection: Connection, matching: SessionFilter, after: Position | None, limit: int
) -> list[Found]:
    """Sessions beyond a position, newest first."""
    conditions: list[str] = []
    values: list[Any] = [limit]
    wanted = {"agent": matching.agent, "cwd": matching.cwd}
    for column, value in wanted.items():
        if value is not None:
            values.append(spell(value))
            conditions.append(f"{column} = ${len(values)}")
    if matching.is_ended is not None:
        values.append(matching.is_ended)
        conditions.append(f"is_ended = ${len(values)}")
    if after is not None:
        place = len(values)
        values += (after[0], spell(after[1]), spell(after[2]))
        conditions.append(f"(updated, agent, session) < (${place + 1}, ${place + 2}, ${place + 3})")
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    order = "ORDER BY updated DESC, agent DESC, session DESC LIMIT $1"
    return await _select(connection, where + order, *values)


async def select_turn(connection: Connection, key: SessionKey, turn_id: str) -> tuple[bool, bytes | None]:
    found = await connection.fetchrow(
        "SELECT answer, checksum FROM sandbox_agent.turns WHERE agent = $1 AND session = $2 AND turn = $3",
        spell(key.agent),
        spell(key.session),
        spell(turn_id),
    )
    if found is None:
        return False, None
    answer, checksum = found
    if zlib.crc32(answer or b"") != checksum:
        return True, None  # it has run, and must not run again; what it answered is gone
    return True, answer


async def _select(connection: Connection, clause: str, *values: Any) -> list[Found]:
    return [_found(row) for row in await connection.fetch(f"{_SESSIONS} {clause}", *values)]


def _found(row: Any) -> Found:
    agent, session = AgentId(read_name(row["agent"])), SessionId(read_name(row["session"]))
    try:
        record = decode_record(row["record"], row["checksum"])
        if record.key != (agent, session):
            raise DamagedRecord("it is another session's")
    except DamagedRecord:
        alias, cwd = (None if row[name] is None else read_name(row[name]) for name in ("alias", "cwd"))
        updated = row["updated"]
        ended = updated if row["is_ended"] else None
        record = SessionRecord(agent=agent, session_id=session, alias=alias, cwd=cwd, updated=updated, ended=ended)
        return Found(record, is_damaged=True)
    record.event_count = row["last"]
    record.owner = row["owner"] or None
    return Found(record, is_damaged=False)
