"""The writing half of the SQL: a group of operations in one transaction, each refused if its lease has been lost."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sandbox_agent.core.ids import SessionKey, StreamKey
from sandbox_agent.store.batches import Row, pack_rows
from sandbox_agent.store.operations import Append, DeleteSession, Drop, PutSession, PutTurn
from sandbox_agent.store.postgres import aliases
from sandbox_agent.store.postgres.connecting import Connection
from sandbox_agent.store.postgres.leases import EPOCH_NOW, Node, hold_place
from sandbox_agent.store.postgres.names import spell
from sandbox_agent.store.records import decode_record


class Claim(NamedTuple):
    """A stream that a group writes to: under which epoch (None: it is new), and from which entry to which."""

    stream: StreamKey
    epoch: int | None
    before: int
    last: int
    ended: float
    alias: str | None = None
    """Of a new session, reserved by us."""


class Taken(NamedTuple):
    """Of a group: the epochs of the streams that are ours. What was for others was not written."""

    epochs: dict[StreamKey, int]
    misnamed: set[StreamKey]
    """Those whose alias is kept for another session by now; they are not ours either."""


async def take_in(
    connection: Connection,
    node: Node,
    claims: Sequence[Claim],
    operations: Iterable[Append | PutSession | PutTurn],
) -> Taken:
    """All of it that may be written, or nothing. Asked again, since the answer got lost, it writes nothing twice.

    Raises Superseded, asyncpg.PostgresError and what else can happen on the way."""
    async with connection.transaction():
        named = {claim.stream: claim.alias for claim in claims if claim.alias is not None}
        misnamed = await aliases.take(connection, node, named) if named else set()
        epochs, written = await _fence(connection, node, [claim for claim in claims if claim.stream not in misnamed])
        appends: dict[StreamKey, list[Append]] = {}
        records: dict[SessionKey, PutSession] = {}
        turns: dict[tuple[SessionKey, str], PutTurn] = {}
        for operation in operations:
            if isinstance(operation, Append):
                if operation.stream in epochs and operation.stream not in written:
                    appends.setdefault(operation.stream, []).append(operation)
            elif operation.key.stream in epochs:
                if isinstance(operation, PutSession):
                    records[operation.key] = operation
                else:
                    turns[operation.key, operation.turn_id] = operation
        if appends:
            rows = [(stream, epochs[stream], row) for stream, batch in appends.items() for row in pack_rows(batch)]
            await insert_rows(connection, rows)
        if records:
            await put_sessions(connection, list(records.values()))
        if turns:
            await put_turns(connection, list(turns.values()))
    return Taken(epochs, misnamed)


async def remove(connection: Connection, node: Node, operation: Drop | DeleteSession, epoch: int | None) -> None:
    """Forget a stream, and a session, unless another has it by now."""
    stream = operation.stream if isinstance(operation, Drop) else operation.key.stream
    async with connection.transaction():
        await hold_place(connection, node)
        found = await connection.fetchrow(
            "SELECT epoch, owner FROM sandbox_agent.streams WHERE stream = $1 FOR UPDATE", spell(stream)
        )
        if found is not None and found["epoch"] != epoch and found["owner"] != node.id:
            return
        await connection.execute("DELETE FROM sandbox_agent.streams WHERE stream = $1", spell(stream))
        await connection.execute("DELETE FROM sandbox_agent.batches WHERE stream = $1", spell(stream))
        if isinstance(operation, DeleteSession):
            key = (spell(operation.key.agent), spell(operation.key.session))
            await connection.execute("DELETE FROM sandbox_agent.sessions WHERE agent = $1 AND session = $2", *key)
            await connection.execute("DELETE FROM sandbox_agent.turns WHERE agent = $1 AND session = $2", *key)


async def remove_aged(connection: Connection, before: float, rows: int) -> int:
    """Remove batches that ended before a time, oldest first; say how many. Times never run backwards in a stream."""
    return await _remove_oldest(connection, rows, "WHERE ended < $2", before)


async def remove_beyond(connection: Connection, most: int, rows: int) -> int:
    """Remove some of the oldest batches if all together have more bytes than that; say how many."""
    size = await connection.fetchval("SELECT coalesce(sum(size::bigint), 0)::bigint FROM sandbox_agent.batches")
    return await _remove_oldest(connection, rows, "") if size > most else 0


async def _remove_oldest(connection: Connection, rows: int, where: str, *values: float) -> int:
    removed = await connection.execute(
        "DELETE FROM sandbox_agent.batches WHERE (stream, last) IN"  # noqa: S608 - `where` is ours
        f" (SELECT stream, last FROM sandbox_agent.batches {where} ORDER BY ended, last LIMIT $1)",
        rows,
        *values,
    )
    return int(removed.split()[-1])


async def _fence(
    connection: Connection, node: Node, claims: Sequence[Claim]
) -> tuple[dict[StreamKey, int], set[StreamKey]]:
    """The epochs of those streams that are ours, and which of them have the group already, from an earlier try."""
    fresh = [claim for claim in claims if claim.epoch is None]
    held = [claim for claim in claims if claim.epoch is not None]
    epochs: dict[StreamKey, int] = {}
    by_name = {spell(claim.stream): claim for claim in claims}
    if fresh:
        await hold_place(connection, node)
        made = await connection.fetch(
            "INSERT INTO sandbox_agent.streams (stream, last, ended, owner, incarnation, epoch)"  # noqa: S608
            f" SELECT stream, last, ended, $4, $5, {EPOCH_NOW}"
            " FROM unnest($1::text[], $2::bigint[], $3::double precision[]) AS new (stream, last, ended)"
            " ON CONFLICT (stream) DO NOTHING RETURNING stream, epoch",
            [spell(claim.stream) for claim in fresh],
            [claim.last for claim in fresh],
            [claim.ended for claim in fresh],
            *node,
        )
        epochs.update((by_name[name].stream, epoch) for name, epoch in made)
    if held:
        kept = await connection.fetch(
            "UPDATE sandbox_agent.streams SET last = new.last, ended = new.ended"
            " FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::double precision[])"
            " AS new (stream, epoch, before, last, ended)"
            " WHERE streams.stream = new.stream AND streams.epoch = new.epoch AND streams.last = new.before"
            " RETURNING streams.stream, streams.epoch",
            [spell(claim.stream) for claim in held],
            [claim.epoch for claim in held],
            [claim.before for claim in held],
            [claim.last for claim in held],
            [claim.ended for claim in held],
        )
        epochs.update((by_name[name].stream, epoch) for name, epoch in kept)
    missing = [name for name, claim in by_name.items() if claim.stream not in epochs]
    written: set[StreamKey] = set()
    if missing:
        rows = await connection.fetch(
            "SELECT stream, last, owner, incarnation, epoch FROM sandbox_agent.streams WHERE stream = ANY($1::text[])",
            missing,
        )
        for name, last, owner, incarnation, epoch in rows:
            claim = by_name[name]
            is_ours = (owner, incarnation) == node and claim.epoch in (None, epoch)
            if is_ours and last == claim.last:  # the commit was done, only we were not told
                epochs[claim.stream] = epoch
                written.add(claim.stream)
    return epochs, written


async def insert_rows(connection: Connection, rows: list[tuple[StreamKey, int, Row]]) -> None:
    """Rows of streams, each under an epoch."""
    await connection.execute(
        "INSERT INTO sandbox_agent.batches (stream, first, last, began, ended, epoch, size, body, checksum)"
        " SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::double precision[],"
        " $5::double precision[], $6::bigint[], $7::integer[], $8::bytea[], $9::bigint[])",
        [spell(stream) for stream, _, _ in rows],
        [row.first for _, _, row in rows],
        [row.last for _, _, row in rows],
        [row.began for _, _, row in rows],
        [row.ended for _, _, row in rows],
        [epoch for _, epoch, _ in rows],
        [len(row.body) for _, _, row in rows],
        [row.body for _, _, row in rows],
        [row.checksum for _, _, row in rows],
    )


async def put_sessions(connection: Connection, puts: list[PutSession]) -> None:
    records = [decode_record(put.record, None) for put in puts]
    await connection.execute(
        "INSERT INTO sandbox_agent.sessions (agent, session, stream, alias, cwd, updated, is_ended, record, checksum)"
        " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::double precision[],"
        " $7::boolean[], $8::bytea[], $9::bigint[])"
        " ON CONFLICT (agent, session) DO UPDATE SET stream = excluded.stream, alias = excluded.alias,"
        " cwd = excluded.cwd, updated = excluded.updated, is_ended = excluded.is_ended, record = excluded.record,"
        " checksum = excluded.checksum",
        [spell(record.agent) for record in records],
        [spell(record.session_id) for record in records],
        [spell(record.key.stream) for record in records],
        [None if record.alias is None else spell(record.alias) for record in records],
        [None if record.cwd is None else spell(record.cwd) for record in records],
        [record.updated for record in records],
        [record.ended is not None for record in records],
        [put.record for put in puts],
        [zlib.crc32(put.record) for put in puts],
    )


async def put_turns(connection: Connection, turns: list[PutTurn]) -> None:
    await connection.execute(
        "INSERT INTO sandbox_agent.turns (agent, session, turn, answer, checksum)"
        " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[])"
        " ON CONFLICT (agent, session, turn) DO UPDATE SET answer = excluded.answer, checksum = excluded.checksum",
        [spell(turn.key.agent) for turn in turns],
        [spell(turn.key.session) for turn in turns],
        [spell(turn.turn_id) for turn in turns],
        [turn.answer for turn in turns],
        [zlib.crc32(turn.answer or b"") for turn in turns],
    )
