"""A PostgreSQL database as one side of a copy."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.errors import StoreError, StoreInUse
from sandbox_agent.store.batches import DamagedRow, Row, unpack_row
from sandbox_agent.store.copying import Turns
from sandbox_agent.store.membership import Membership
from sandbox_agent.store.operations import PutSession, PutTurn
from sandbox_agent.store.postgres import leases, schema
from sandbox_agent.store.postgres.connecting import Connection, Place, check_server
from sandbox_agent.store.postgres.names import read_name, spell
from sandbox_agent.store.postgres.writing import insert_rows, put_sessions, put_turns
from sandbox_agent.store.records import decode_record
from sandbox_agent.version import __version__

_MEMBERSHIP = Membership()


@asynccontextmanager
async def postgres_side(url: str) -> AsyncIterator[PostgresSide]:
    """No server may use it. Raises StoreError, StoreInUse."""
    place = Place(url)
    connection = await place.connect()
    try:
        await check_server(connection, place)
        await schema.migrate(connection, place)
        busy = await connection.fetch("SELECT id FROM sandbox_agent.nodes WHERE expires > now()")
        if busy:
            names = ", ".join(row["id"] for row in busy)
            raise StoreInUse(f"{place} is in use by servers (nodes {names}): stop them; one that died counts for 30 s")
        node = await leases.register(connection, f"copy-{secrets.token_hex(8)}", _MEMBERSHIP, __version__)
        try:
            yield PostgresSide(str(place), connection, node)
        finally:
            if not connection.is_closed():
                await connection.execute("DELETE FROM sandbox_agent.nodes WHERE id = $1", node.id)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StoreError(place.explain(error)) from error
    finally:
        connection.terminate()


class PostgresSide:
    def __init__(self, name: str, connection: Connection, node: leases.Node) -> None:
        self.name = name
        self._connection = connection
        self._node = node

    async def size(self) -> int:
        size: int = await self._connection.fetchval(
            "SELECT coalesce(sum(size::bigint), 0)::bigint FROM sandbox_agent.batches"
        )
        return size

    async def sessions(self) -> list[SessionKey]:
        found = await self._connection.fetch(
            "SELECT agent, session FROM sandbox_agent.sessions ORDER BY agent, session"
        )
        return [SessionKey(AgentId(read_name(agent)), SessionId(read_name(session))) for agent, session in found]

    async def last(self, key: SessionKey) -> int:
        last: int | None = await self._connection.fetchval(
            "SELECT last FROM sandbox_agent.streams WHERE stream = $1", spell(key.stream)
        )
        return last or 0

    async def rows(self, key: SessionKey, *, after: int, limit: int) -> list[Row]:
        found = await self._connection.fetch(
            "SELECT first, last, began, ended, body, checksum FROM sandbox_agent.batches"
            " WHERE stream = $1 AND last > $2 ORDER BY last LIMIT $3",
            spell(key.stream),
            after,
            limit,
        )
        for first, last, _, _, body, checksum in found:
            try:
                unpack_row(first, last, body, checksum)
            except DamagedRow as error:
                raise StoreError(f"{self.name} is damaged in session {key.session!r} ({error})") from error
        return [Row(*values) for *values, _ in found]

    async def record(self, key: SessionKey) -> bytes | None:
        found = await self._connection.fetchrow(
            "SELECT record, checksum FROM sandbox_agent.sessions WHERE agent = $1 AND session = $2", *_spelled(key)
        )
        if found is None:
            return None
        decode_record(*found)
        return bytes(found["record"])

    async def turns(self, key: SessionKey) -> Turns:
        found = await self._connection.fetch(
            "SELECT turn, answer FROM sandbox_agent.turns WHERE agent = $1 AND session = $2 ORDER BY turn",
            *_spelled(key),
        )
        return [(read_name(turn), answer) for turn, answer in found]

    async def _acquire(self, stream: StreamKey) -> leases.Acquired:
        return await leases.acquire(self._connection, self._node, stream, lease=_MEMBERSHIP.lease, takes_over=True)

    async def add_rows(self, key: SessionKey, rows: list[Row]) -> None:
        async with self._connection.transaction():
            lease = await self._acquire(key.stream)
            await insert_rows(self._connection, [(key.stream, lease.epoch, row) for row in rows])
            await self._advance(key, rows[-1].last, rows[-1].ended)

    async def finish(self, key: SessionKey, record: bytes, turns: Turns, last: int) -> None:
        async with self._connection.transaction():
            lease = await self._acquire(key.stream)
            await self._advance(key, last, lease.ended)
            await leases.release(self._connection, self._node, key.stream, lease.epoch)
            await put_sessions(self._connection, [PutSession(0, key, record)])
            if turns:
                await put_turns(self._connection, [PutTurn(0, key, turn, answer) for turn, answer in turns])

    async def _advance(self, key: SessionKey, last: int, ended: float) -> None:
        await self._connection.execute(
            "UPDATE sandbox_agent.streams SET last = $2, ended = greatest(ended, $3) WHERE stream = $1",
            spell(key.stream),
            last,
            ended,
        )


def _spelled(key: SessionKey) -> tuple[str, str]:
    return spell(key.agent), spell(key.session)
