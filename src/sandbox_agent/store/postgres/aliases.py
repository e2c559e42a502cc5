"""Aliases that are kept for sessions which are being made. That they are taken stands with the sessions themselves.

Whoever makes a session reserves its alias first, and then looks whether a session has it; the commit that brings the
session takes the reservation away. So of two nodes one has to wait for the other, and finds what that has made. A
reservation holds, as a lease does, while the row of its node has not expired and was not begun anew; one whose node
came too late is refused by the commit.
"""

from __future__ import annotations

from collections.abc import Mapping

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.store.postgres.connecting import Connection
from sandbox_agent.store.postgres.leases import Node
from sandbox_agent.store.postgres.names import spell


async def reserve(connection: Connection, node: Node, alias: str) -> bool:
    """Whether no other node has reserved it."""
    reserved = await connection.fetchval(
        "INSERT INTO sandbox_agent.reserved_aliases AS held (alias, node, incarnation) VALUES ($1, $2, $3)"
        " ON CONFLICT (alias) DO UPDATE SET node = excluded.node, incarnation = excluded.incarnation"
        " WHERE held.node = excluded.node OR NOT EXISTS (SELECT 1 FROM sandbox_agent.nodes"
        " WHERE nodes.id = held.node AND nodes.incarnation = held.incarnation AND nodes.expires > now())"
        " RETURNING 1",
        spell(alias),
        *node,
    )
    return reserved is not None


async def give_back(connection: Connection, node: Node, alias: str) -> None:
    """No session is made with it."""
    await connection.execute(
        "DELETE FROM sandbox_agent.reserved_aliases WHERE alias = $1 AND node = $2 AND incarnation = $3",
        spell(alias),
        *node,
    )


async def take(connection: Connection, node: Node, aliases: Mapping[StreamKey, str]) -> set[StreamKey]:
    """In the transaction that brings new sessions. Gives those that may not have their alias any more."""
    by_name = {spell(alias): stream for stream, alias in aliases.items()}
    taken = await connection.fetch(
        "DELETE FROM sandbox_agent.reserved_aliases"
        " WHERE alias = ANY($1::text[]) AND node = $2 AND incarnation = $3 RETURNING alias",
        list(by_name),
        *node,
    )
    missing = by_name.keys() - {alias for (alias,) in taken}
    if not missing:
        return set()
    brought = await connection.fetch(  # by an earlier try, of which only the answer got lost
        "SELECT alias, stream FROM sandbox_agent.sessions WHERE alias = ANY($1::text[])", list(missing)
    )
    is_there = {alias for alias, stream in brought if stream == spell(by_name[alias])}
    return {by_name[alias] for alias in missing - is_there}
