"""The connections that are open: made, found and closed here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from sandbox_agent.core import versions
from sandbox_agent.core.ids import AgentId, ConnectionId
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.session import Session
from sandbox_agent.core.users import OWNER, User
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import TooMany, UnknownConnection
from sandbox_agent.hub.clients.connection import Connection, Dispatch, wants
from sandbox_agent.hub.clients.sequenced import sequencing
from sandbox_agent.hub.clients.stream import Stream
from sandbox_agent.store.base import Store

C = TypeVar("C", bound=Connection)


class Clients(Mapping[ConnectionId, Connection]):
    def __init__(self, store: Store, *, limit: int, window_bytes: int, correlation_bytes: int) -> None:
        self._store = store
        self._limit = limit
        self._window_bytes = window_bytes
        self._correlation_bytes = correlation_bytes
        self.by_id: dict[ConnectionId, Connection] = {}
        """For the hot path, which looks a connection up for every message; to be looked at only."""
        self._item_listeners: set[ConnectionId] = set()
        self._at_close: dict[ConnectionId, list[Callable[[], None]]] = {}

    def __getitem__(self, connection_id: ConnectionId) -> Connection:
        return self.by_id[connection_id]

    def __iter__(self) -> Iterator[ConnectionId]:
        return iter(self.by_id)

    def __len__(self) -> int:
        return len(self.by_id)

    def require_place(self) -> None:
        """Raises TooMany."""
        if len(self.by_id) >= self._limit:
            raise TooMany(f"connection limit ({self._limit}) reached")

    def add(
        self,
        agent: AgentId,
        params: dict[str, Any],
        dispatch: Dispatch,
        *,
        kind: type[Connection],
        connection_id: ConnectionId | None,
        user: User = OWNER,
    ) -> Connection:
        """A new connection for a client that said `params` in its `initialize`."""
        version = versions.chosen_version(params)
        said = as_object(versions.initialize_request(params, from_=version, to=Version.V1))
        capabilities, info = as_object(said.get("clientCapabilities")), as_object(said.get("clientInfo"))
        return self.admit(
            agent, capabilities, info, version, dispatch, kind=kind, connection_id=connection_id, user=user
        )

    def admit(
        self,
        agent: AgentId,
        capabilities: dict[str, Any],
        client_info: dict[str, Any],
        version: Version,
        dispatch: Dispatch,
        *,
        kind: type[C],
        connection_id: ConnectionId | None = None,
        user: User = OWNER,
    ) -> C:
        """As `add`, for a client that has introduced itself already, in the words of version 1."""
        if wants(capabilities, "sequences"):
            kind = sequencing(kind)
        if wants(capabilities, "legacyEvents"):
            from sandbox_agent.hub.clients.correlation import correlating  # noqa: PLC0415 - few want it

            kind = correlating(kind, self._store, waiting_bytes=self._correlation_bytes)
        connection = kind(
            connection_id or new_connection_id(),
            agent,
            capabilities,
            client_info,
            version,
            lambda own, part: Stream(self._store, own, memory_limit=self._window_bytes // part),
            dispatch,
            user,
        )
        self.by_id[connection.id] = connection
        if wants(capabilities, "itemCompleted"):
            self._item_listeners.add(connection.id)
        return connection

    def find(self, connection_id: str, user: User = OWNER) -> Connection:
        """Raises UnknownConnection, also for a connection of another user."""
        found = self.by_id.get(ConnectionId(connection_id))
        if found is None or found.user != user:
            raise UnknownConnection(connection_id)
        return found

    def at_close(self, connection: Connection, act: Callable[[], None]) -> None:
        """Call `act` when the connection closes."""
        self._at_close.setdefault(connection.id, []).append(act)

    async def close(self, connection: Connection) -> None:
        """End its streams and answer whoever waits at it."""
        del self.by_id[connection.id]
        self._item_listeners.discard(connection.id)
        for act in self._at_close.pop(connection.id, ()):
            act()
        connection.close("connection closed", UnknownConnection(connection.id))
        for stream in connection.streams:
            await self._store.drop(stream.own)

    @property
    def has_item_listeners(self) -> bool:
        return bool(self._item_listeners)

    def item_listeners(self, session: Session | None) -> list[Connection]:
        """Those attached that asked for whole items at the end of a turn."""
        attached = session.connections if session is not None else ()
        return [self.by_id[name] for name in attached if name in self._item_listeners and name in self.by_id]


def new_connection_id() -> ConnectionId:
    return ConnectionId(f"conn_{secrets.token_urlsafe(16)}")
