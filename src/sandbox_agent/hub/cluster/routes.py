"""What this node remembers of sessions that live elsewhere, and who waits while one is sought."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from sandbox_agent.core.ids import ConnectionId, SessionKey, SessionName

_REMEMBERED = 100_000


class Route(NamedTuple):
    node: str
    key: SessionKey


class Routes:
    """Where sessions were found, by the names that clients gave them. Their owners say so when it is no longer true."""

    def __init__(self) -> None:
        self._routes: dict[SessionName, Route] = {}
        self._names: dict[SessionKey, set[SessionName]] = {}

    def get(self, name: SessionName) -> Route | None:
        return self._routes.get(name)

    def remember(self, name: SessionName, route: Route) -> None:
        if len(self._routes) >= _REMEMBERED:
            self.forget(next(iter(self._names)))
        self._routes[name] = route
        self._names.setdefault(route.key, set()).add(name)

    def forget(self, key: SessionKey) -> None:
        for name in self._names.pop(key, ()):
            self._routes.pop(name, None)


class Lines:
    """What a client says of a session stays in its order, though the session's owner has to be found."""

    def __init__(self) -> None:
        self._lines: dict[tuple[ConnectionId, str], _Line] = {}

    def is_any(self, connection: ConnectionId, session: str) -> bool:
        """Whether somebody stands in line: then others must too."""
        return (connection, session) in self._lines

    @asynccontextmanager
    async def stand(self, connection: ConnectionId, session: str) -> AsyncIterator[None]:
        place = (connection, session)
        line = self._lines.setdefault(place, _Line())
        line.users += 1
        try:
            async with line.lock:
                yield
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[place]


class _Line:
    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
