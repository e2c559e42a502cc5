"""`_sandboxagent/feed/*`: the changes of everything, for clients that speak ACP only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Raw

from sandbox_agent.core import frames
from sandbox_agent.core.ids import ConnectionId
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.extensions.extensions import Method
from sandbox_agent.hub.feed import Change, Feed

FOLLOW = "_sandboxagent/feed/follow"
CHANGED = "_sandboxagent/feed/changed"


class _Follow(msgspec.Struct):
    after: str | None = None


class FeedExtensions:
    def __init__(self, own: Feed, whole: Callable[[], Awaitable[Feed]], clients: Clients) -> None:
        """`own` is for other nodes, which follow each node by itself; `whole` is for all others."""
        self._own = own
        self._whole = whole
        self._clients = clients
        self._following: dict[ConnectionId, Callable[[], None]] = {}
        self._known: set[ConnectionId] = set()
        """Those that have followed once: they are waited for no more than once."""
        self.methods: dict[str, Method] = {
            FOLLOW: self._follow,
            "_sandboxagent/feed/unfollow": self._unfollow,
        }

    async def _follow(self, request: Request) -> dict[str, Any]:
        """From now on, or from a position on, every change is a notification on the stream. Following twice is once."""
        connection = request.connection
        after = request.read(_Follow).after
        feed = self._own if connection.is_guest else await self._whole()
        if connection.is_closed:
            return {}

        def tell(change: Change) -> None:
            body = {"id": change.position, **msgspec.json.decode(change.body, type=dict[str, Raw])}
            connection.deliver_own(None, frames.notification(CHANGED, body))

        position = feed.position
        if connection.id not in self._known:
            self._known.add(connection.id)
            self._clients.at_close(connection, lambda: self._forget(connection.id))
        self._stop(connection.id)
        self._following[connection.id] = feed.follow(after, tell)
        return {"after": after or position}

    async def _unfollow(self, request: Request) -> dict[str, Any]:
        self._stop(request.connection.id)
        return {}

    def _forget(self, connection: ConnectionId) -> None:
        self._known.discard(connection)
        self._stop(connection)

    def _stop(self, connection: ConnectionId) -> None:
        leave = self._following.pop(connection, None)
        if leave is not None:
            leave()
