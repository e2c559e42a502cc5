"""Who may append to which stream. One row of a node holds all its leases; the epoch of a stream refuses who is late.

Clocks are the database's: no node compares its own with another's. An epoch is the larger of the one before plus one
and the database's time in milliseconds, so that it grows even over a stream that was deleted and begun anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.errors import OwnerGone, SessionElsewhere, StoreError
from sandbox_agent.store.membership import Membership
from sandbox_agent.store.postgres.connecting import Connection
from sandbox_agent.store.postgres.names import spell

EPOCH_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


NOBODY = ""
"""The owner of a session that its node has handed on: whoever needs it may have it."""


class Node(NamedTuple):
    """This server. A node that starts again gets a higher incarnation, and what it was before may acquire nothing."""

    id: str
    incarnation: int


class Superseded(StoreError):
    """This server was started again elsewhere, with the same data directory."""


class Beat(NamedTuple):
    """What the database says when leases are renewed: its time in seconds since the epoch, and whether we drain."""

    now: float
    is_draining: bool


class Acquired(NamedTuple):
    epoch: int
    last: int
    ended: float
    """When the newest entry was written."""


async def register(connection: Connection, node_id: str, membership: Membership, version: str) -> Node:
    """Nodes that are long gone and own nothing are forgotten, and aliases that nodes which have died had reserved."""
    await connection.execute(
        "DELETE FROM sandbox_agent.nodes WHERE expires < now() - interval '7 days'"
        " AND NOT EXISTS (SELECT 1 FROM sandbox_agent.streams WHERE owner = nodes.id)"
    )
    incarnation = await connection.fetchval(
        "INSERT INTO sandbox_agent.nodes (id, incarnation, expires, url, version)"
        " VALUES ($1, 1, now() + make_interval(secs => $2), $3, $4)"
        " ON CONFLICT (id) DO UPDATE SET incarnation = nodes.incarnation + 1, expires = excluded.expires,"
        " url = excluded.url, version = excluded.version, is_draining = false, began = now()"
        " RETURNING incarnation",
        node_id,
        membership.lease,
        membership.url,
        version,
    )
    await connection.execute(
        "DELETE FROM sandbox_agent.reserved_aliases WHERE NOT EXISTS (SELECT 1 FROM sandbox_agent.nodes"
        " WHERE nodes.id = node AND nodes.incarnation = reserved_aliases.incarnation AND nodes.expires > now())"
    )
    return Node(node_id, incarnation)


async def renew(connection: Connection, node: Node, lease: float) -> Beat:
    """Keep all leases of a node for `lease` seconds. Raises Superseded."""
    found = await connection.fetchrow(
        "UPDATE sandbox_agent.nodes SET expires = now() + make_interval(secs => $3) WHERE id = $1 AND incarnation = $2"
        " RETURNING extract(epoch FROM clock_timestamp())::double precision, is_draining",
        *node,
        lease,
    )
    if found is None:
        raise superseded(node)
    return Beat(*found)


async def hand_back(connection: Connection, node: Node) -> None:
    """Others need not wait for the leases to end."""
    await connection.execute("UPDATE sandbox_agent.nodes SET expires = now() WHERE id = $1 AND incarnation = $2", *node)


async def hold_place(connection: Connection, node: Node) -> None:
    """In a transaction: until its end nobody takes our place. Raises Superseded."""
    is_there = await connection.fetchval(
        "SELECT 1 FROM sandbox_agent.nodes WHERE id = $1 AND incarnation = $2 FOR SHARE", *node
    )
    if is_there is None:
        raise superseded(node)


async def acquire(connection: Connection, node: Node, stream: StreamKey, *, lease: float, takes_over: bool) -> Acquired:
    """In a transaction. Raises SessionElsewhere, Superseded, and OwnerGone where nothing is to be taken over."""
    await hold_place(connection, node)
    await connection.execute(
        "INSERT INTO sandbox_agent.streams (stream, last, ended, owner, incarnation, epoch)"  # noqa: S608
        f" VALUES ($1, 0, 0, $2, $3, {EPOCH_NOW}) ON CONFLICT (stream) DO NOTHING",
        spell(stream),
        *node,
    )
    found = await connection.fetchrow(
        "SELECT last, ended, owner, incarnation, epoch FROM sandbox_agent.streams WHERE stream = $1 FOR UPDATE",
        spell(stream),
    )
    owner = Node(found["owner"], found["incarnation"])
    if owner == node:
        return Acquired(found["epoch"], found["last"], found["ended"])
    if owner.id != node.id and await _is_alive(connection, owner.id):
        session = stream.rpartition(":")[2]
        raise SessionElsewhere(
            f"session {session!r} belongs to another server (node {owner.id}): use that one, stop it, or try again "
            f"{lease:g} s after it died",
            sessionId=session,
            node=owner.id,
        )
    if owner.id not in (node.id, NOBODY) and not takes_over:
        session = stream.rpartition(":")[2]
        raise OwnerGone(
            f"session {session!r} lives at node {owner.id}, which is gone, and is not taken over here (takeover = "
            "never): its history can be read; start that node again to go on",
            sessionId=session,
            node=owner.id,
        )
    epoch = await connection.fetchval(
        "UPDATE sandbox_agent.streams SET owner = $2, incarnation = $3,"  # noqa: S608
        f" epoch = greatest(epoch + 1, {EPOCH_NOW}) WHERE stream = $1 RETURNING epoch",
        spell(stream),
        *node,
    )
    return Acquired(epoch, found["last"], found["ended"])


async def release(connection: Connection, node: Node, stream: StreamKey, epoch: int) -> None:
    """Hand one stream on, to whoever needs it next. What is still written under our epoch is refused from now on."""
    await connection.execute(
        "UPDATE sandbox_agent.streams SET owner = $4, incarnation = 0, epoch = epoch + 1"
        " WHERE stream = $1 AND owner = $2 AND epoch = $3",
        spell(stream),
        node.id,
        epoch,
        NOBODY,
    )


async def release_all_but(connection: Connection, node: Node, kept: Sequence[StreamKey]) -> None:
    """Hand on what a node owns and does not use: sessions of its earlier lives."""
    await connection.execute(
        "UPDATE sandbox_agent.streams SET owner = $3, incarnation = 0, epoch = epoch + 1"
        " WHERE owner = $1 AND NOT stream = ANY($2::text[])",
        node.id,
        [spell(stream) for stream in kept],
        NOBODY,
    )


def superseded(node: Node) -> Superseded:
    return Superseded(
        f"another server has taken the place of this one (node {node.id}), with the same data directory: stop this one"
    )


async def _is_alive(connection: Connection, node_id: str) -> bool:
    """Whether the node is there, perhaps started again: then it takes its own sessions up again."""
    found = await connection.fetchval("SELECT 1 FROM sandbox_agent.nodes WHERE id = $1 AND expires > now()", node_id)
    return found is not None
