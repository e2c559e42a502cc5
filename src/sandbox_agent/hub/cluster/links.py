"""The links of this node, dialled when they are first needed.

They lead only to nodes that stand in the database, at the addresses that those have written there themselves.
"""

from __future__ import annotations

import asyncio
import random

from sandbox_agent.errors import NodeDraining, NodeUnreachable
from sandbox_agent.hub.cluster.link import Link, dial
from sandbox_agent.store.postgres.directory import Directory


class Links:
    def __init__(self, directory: Directory, token: str, *, lease: float, ca_file: str | None) -> None:
        self._directory = directory
        self._token = token
        self._lease = lease
        self._ca_file = ca_file
        self._links: dict[str, Link] = {}
        self._dialling: dict[str, asyncio.Task[Link]] = {}

    def __len__(self) -> int:
        return len(self._links)

    async def to(self, node: str) -> Link:
        """The link to a node, one for all who ask. Raises NodeUnreachable, StoreError."""
        link = self._links.get(node)
        if link is not None:
            return link
        task = self._dialling.get(node)
        if task is None:
            task = self._dialling[node] = asyncio.create_task(self._dial(node), name=f"dial-{node}")
            task.add_done_callback(lambda done: self._dialled(node, done))
        return await asyncio.shield(task)

    async def another(self) -> str:
        """Any other node that takes sessions. Raises NodeDraining when there is none."""
        others = [peer.id for peer in await self._directory.others() if not peer.is_draining]
        if not others:
            raise NodeDraining(f"node {self._directory.node.id} is draining, and no other node takes sessions")
        return random.choice(others)

    async def close(self) -> None:
        for task in self._dialling.values():
            task.cancel()
        await asyncio.gather(*(link.close() for link in list(self._links.values())))

    async def _dial(self, node: str) -> Link:
        peer = await self._directory.find(node)
        if peer is None or not peer.url:
            raise NodeUnreachable(f"node {node} has no address for others: set node_url and cluster_token", node=node)
        return await dial(node, peer.url, self._token, lease=self._lease, ca_file=self._ca_file, on_end=self._ended)

    def _dialled(self, node: str, task: asyncio.Task[Link]) -> None:
        self._dialling.pop(node, None)
        if not task.cancelled() and task.exception() is None and not task.result().is_over:
            self._links[node] = task.result()

    def _ended(self, link: Link) -> None:
        if self._links.get(link.node) is link:
            del self._links[link.node]
