"""The tables, and how they came to be. Keys begin with the session: a distributed engine keeps each in one place."""

from __future__ import annotations

import asyncio
import random

import asyncpg

from sandbox_agent.errors import StoreError
from sandbox_agent.store.postgres.connecting import Connection, Place

_ATTEMPTS = 20

_FIRST = (
    # A lease of a session holds while the row of its node has not expired, and was not begun anew.
    """CREATE TABLE sandbox_agent.nodes (
        id text PRIMARY KEY, incarnation bigint NOT NULL, expires timestamptz NOT NULL
    )""",
    # `last` outlives the batches, so that sequences never begin anew when retention has taken them all.
    """CREATE TABLE sandbox_agent.streams (
        stream text COLLATE "C" PRIMARY KEY, last bigint NOT NULL, ended double precision NOT NULL,
        owner text NOT NULL, incarnation bigint NOT NULL, epoch bigint NOT NULL
    )""",
    """CREATE TABLE sandbox_agent.batches (
        stream text COLLATE "C" NOT NULL, first bigint NOT NULL, last bigint NOT NULL,
        began double precision NOT NULL, ended double precision NOT NULL, epoch bigint NOT NULL,
        size integer NOT NULL, body bytea NOT NULL, checksum bigint NOT NULL, PRIMARY KEY (stream, last)
    )""",
    "CREATE INDEX batches_by_end ON sandbox_agent.batches (ended)",
    """CREATE TABLE sandbox_agent.sessions (
        agent text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL, stream text COLLATE "C" NOT NULL,
        alias text COLLATE "C", cwd text COLLATE "C", updated double precision NOT NULL, is_ended boolean NOT NULL,
        record bytea NOT NULL, checksum bigint NOT NULL, PRIMARY KEY (agent, session)
    )""",
    "CREATE INDEX sessions_by_updated ON sandbox_agent.sessions (updated, agent, session)",
    "CREATE INDEX sessions_by_cwd ON sandbox_agent.sessions (cwd, updated)",
    "CREATE INDEX sessions_by_session ON sandbox_agent.sessions (session)",
    "CREATE INDEX sessions_by_alias ON sandbox_agent.sessions (alias)",
    """CREATE TABLE sandbox_agent.turns (
        agent text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL, turn text COLLATE "C" NOT NULL,
        answer bytea, checksum bigint NOT NULL, PRIMARY KEY (agent, session, turn)
    )""",
)

_NODES = (
    # Where other nodes reach it, and what its people want of it. Earlier servers leave these columns alone.
    """ALTER TABLE sandbox_agent.nodes
        ADD COLUMN url text NOT NULL DEFAULT '', ADD COLUMN version text NOT NULL DEFAULT '',
        ADD COLUMN is_draining boolean NOT NULL DEFAULT false, ADD COLUMN began timestamptz NOT NULL DEFAULT now()""",
    "CREATE INDEX streams_by_owner ON sandbox_agent.streams (owner)",
)

_ALIASES = (
    # Of sessions that are being made: see aliases.py. Sessions that share an alias since before go on as they are.
    """CREATE TABLE sandbox_agent.reserved_aliases (
        alias text COLLATE "C" PRIMARY KEY, node text NOT NULL, incarnation bigint NOT NULL
    )""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _NODES, _ALIASES)
"""Step N leads from version N to N+1. Steps are never changed, only added."""


async def migrate(connection: Connection, place: Place, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> None:
    """Bring the tables to the newest version, one server at a time. Raises StoreError, and then has changed nothing.

    The row with the version is the guard: whoever has it locked makes the tables, and others wait for it."""
    for attempt in range(_ATTEMPTS):
        try:
            await _migrate(connection, place, migrations)
            return
        except (
            asyncpg.UniqueViolationError,  # two servers that make the schema at the same moment
            asyncpg.DuplicateObjectError,
            asyncpg.SerializationError,
            asyncpg.DeadlockDetectedError,
        ) as error:
            if attempt == _ATTEMPTS - 1:
                raise StoreError(place.explain(error)) from error
            await asyncio.sleep(random.uniform(0.01, 0.1))
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise StoreError(place.explain(error)) from error


async def _migrate(connection: Connection, place: Place, migrations: tuple[tuple[str, ...], ...]) -> None:
    newest = len(migrations)
    if await _version(connection) == newest:
        return
    async with connection.transaction():
        await connection.execute("CREATE SCHEMA IF NOT EXISTS sandbox_agent")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS sandbox_agent.meta (name text PRIMARY KEY, value bigint NOT NULL)"
        )
        await connection.execute("INSERT INTO sandbox_agent.meta VALUES ('version', 0) ON CONFLICT (name) DO NOTHING")
    async with connection.transaction():
        version = await connection.fetchval("SELECT value FROM sandbox_agent.meta WHERE name = 'version' FOR UPDATE")
        if version > newest:
            raise StoreError(
                f"the history in {place} has version {version}, but this program knows {newest} at most; "
                "it was left as it is: use the newer program, or name another database in `store`"
            )
        for steps in migrations[version:]:
            for statement in steps:
                await connection.execute(statement)
        await connection.execute("UPDATE sandbox_agent.meta SET value = $1 WHERE name = 'version'", newest)


async def _version(connection: Connection) -> int | None:
    """None where there is nothing yet. Asked first: who may not make tables may use those that are there."""
    try:
        found: int | None = await connection.fetchval("SELECT value FROM sandbox_agent.meta WHERE name = 'version'")
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return None
    return found
