"""`/v1/nodes`: the servers that share a database, and taking one of them out of service."""

from __future__ import annotations

from typing import Literal

import msgspec

from sandbox_agent.core.json_values import iso_time
from sandbox_agent.errors import NotFound
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Response
from sandbox_agent.http.asgi.routes import Operation
from sandbox_agent.hub.hub import Hub


class NodeView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    url: str
    """Where the other nodes reach it."""
    state: Literal["up", "draining", "gone"]
    version: str
    sessions: int
    """Sessions that it owns."""
    started_at: str
    lease_until: str
    """Until when its sessions are its own, unless it is heard of again."""
    is_self: bool
    """Whether it is the node that answers."""


class NodeList(msgspec.Struct, frozen=True):
    """Empty for a server that is not part of a cluster."""

    nodes: list[NodeView]


LIST_NODES = Operation("listNodes", "List the nodes of the cluster", "server", returns=NodeList)
DRAIN_NODE = Operation(
    "drainNode",
    "Drain a node",
    "server",
    "The node finishes running turns, for at most `drain_ms`, hands its sessions on to other nodes and takes no "
    "others, until it is resumed or restarted.",
    status=204,
    errors=(NotFound,),
)
RESUME_NODE = Operation(
    "resumeNode", "Have a drained node take sessions again", "server", status=204, errors=(NotFound,)
)


class NodesApi:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def list(self, _: Exchange) -> NodeList:
        cluster = self._hub.cluster
        if cluster is None:
            return NodeList([])
        return NodeList(
            [
                NodeView(
                    id=row.id,
                    url=row.url,
                    state="gone" if not row.is_alive else "draining" if row.is_draining else "up",
                    version=row.version,
                    sessions=row.sessions,
                    started_at=iso_time(row.began),
                    lease_until=iso_time(row.expires),
                    is_self=row.id == cluster.node,
                )
                for row in await cluster.directory.nodes()
            ]
        )

    async def drain(self, exchange: Exchange) -> Response:
        return await self._set(exchange, is_draining=True)

    async def resume(self, exchange: Exchange) -> Response:
        return await self._set(exchange, is_draining=False)

    async def _set(self, exchange: Exchange, *, is_draining: bool) -> Response:
        if self._hub.cluster is None:
            raise NotFound("this server is not part of a cluster: set store and cluster_token")
        await self._hub.cluster.directory.drain(exchange.path("id"), is_draining=is_draining)
        return Response(204)
