"""Which nodes share the database, and which of them has a session. What it says was true a moment ago."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.errors import NotFound
from sandbox_agent.store.postgres.connecting import Readers
from sandbox_agent.store.postgres.leases import Node
from sandbox_agent.store.postgres.names import read_name, spell


class NodeRow(NamedTuple):
    """`began` and `expires` are seconds since the epoch, by the database's clock."""

    id: str
    url: str
    version: str
    is_alive: bool
    is_draining: bool
    began: float
    expires: float
    sessions: int


class Owner(NamedTuple):
    """Who has a session. One that is not alive can be taken over; it has no `node` if it was handed on."""

    node: str
    is_alive: bool


class Directory:
    def __init__(self, node: Node, readers: Readers) -> None:
        self.node = node
        self.is_to_drain = False
        """Whether somebody wants this node to hand its sessions on, as far as the database has said."""
        self.is_stopping = False
        self.on_beat: Callable[[], None] = lambda: None
        """Called whenever our leases were renewed."""
        self._readers = readers

    @property
    def is_draining(self) -> bool:
        """Whether this node takes no session that it does not have."""
        return self.is_to_drain or self.is_stopping

    async def nodes(self) -> list[NodeRow]:
        """Every node that has ever used the database and was not removed from it, by id. Raises StoreError."""
        async with self._readers.lend() as connection:
            rows = await connection.fetch(
                "SELECT id, url, version, expires > now(), is_draining,"
                " extract(epoch FROM began)::double precision, extract(epoch FROM expires)::double precision,"
                " (SELECT count(*) FROM sandbox_agent.streams WHERE owner = nodes.id)"
                " FROM sandbox_agent.nodes ORDER BY id"
            )
        return [NodeRow(*row) for row in rows]

    async def others(self) -> set[str]:
        """The other nodes that live and can be linked to. Raises StoreError."""
        async with self._readers.lend() as connection:
            rows = await connection.fetch(
                "SELECT id FROM sandbox_agent.nodes WHERE expires > now() AND url <> '' AND id <> $1", self.node.id
            )
        return {node for (node,) in rows}

    async def owners(self, streams: Sequence[StreamKey]) -> dict[StreamKey, Owner]:
        """The owners of those sessions that exist. Raises StoreError."""
        by_name = {spell(stream): stream for stream in streams}
        async with self._readers.lend() as connection:
            rows = await connection.fetch(
                "SELECT streams.stream, streams.owner, nodes.id IS NOT NULL"
                " FROM sandbox_agent.streams"
                " LEFT JOIN sandbox_agent.nodes ON nodes.id = streams.owner AND nodes.expires > now()"
                " WHERE streams.stream = ANY($1::text[])",
                list(by_name),
            )
        return {by_name[name]: Owner(node, is_alive) for name, node, is_alive in rows}

    async def grown(self, since: float | None) -> tuple[float, dict[StreamKey, tuple[int, int]]]:
        """The database's time, and the first and last entries of what was written after `since`. Raises StoreError."""
        async with self._readers.lend() as connection:
            now: float = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::double precision")
            rows = await connection.fetch(
                "SELECT stream, min(first), max(last) FROM sandbox_agent.batches WHERE ended > $1 GROUP BY stream",
                now if since is None else since,
            )
        return now, {StreamKey(read_name(name)): (first, last) for name, first, last in rows}

    async def drain(self, node_id: str, *, is_draining: bool) -> None:
        """Have a node hand its sessions on, or take some again; it notices when it renews its leases.

        Raises NotFound, StoreError."""
        async with self._readers.lend() as connection:
            done = await connection.execute(
                "UPDATE sandbox_agent.nodes SET is_draining = $2 WHERE id = $1", node_id, is_draining
            )
        if done == "UPDATE 0":
            raise NotFound(f"there is no node {node_id!r}: GET /v1/nodes lists them")
        if node_id == self.node.id:
            self.is_to_drain = is_draining
            self.on_beat()
