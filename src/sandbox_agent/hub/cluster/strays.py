"""Clients whose session has left the node that they followed it at, and where each of them goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

import msgspec

from sandbox_agent.core.ids import ConnectionId, SessionKey
from sandbox_agent.errors import SandboxAgentError, StoreError
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.store.postgres.directory import Directory

BringBack = Callable[[Connection, SessionKey, "Stray"], Awaitable[None]]
UNKNOWN = -1
"""How far a client has been told that hears translations of a node of 0.2, which do not come with their place."""
_log = logging.getLogger(__name__)


class Stray(msgspec.Struct, eq=False):
    connection: Connection
    after: int
    """The last entry of the history that the client was told, or UNKNOWN. It grows while it is being brought back."""
    is_sought: bool = False


class Strays:
    """Looks every so often, with one question for all, whether somebody has the sessions that they wait for."""

    def __init__(self, bring_back: BringBack, directory: Directory, tasks: Tasks, *, every: float) -> None:
        self._bring_back = bring_back
        self._directory = directory
        self._tasks = tasks
        self._every = every
        self._strays: dict[ConnectionId, dict[SessionKey, Stray]] = {}
        self._locks: WeakValueDictionary[tuple[ConnectionId, SessionKey], asyncio.Lock] = WeakValueDictionary()
        self._is_seeking = False

    def has(self, connection: ConnectionId) -> bool:
        return connection in self._strays

    def position(self, connection: ConnectionId, key: SessionKey) -> int | None:
        """After which entry a client is to be brought back; None if it is no stray."""
        stray = self._strays.get(connection, {}).get(key)
        return None if stray is None else stray.after

    def add(self, connection: Connection, key: SessionKey, after: int) -> None:
        sessions = self._strays.setdefault(connection.id, {})
        known = sessions.get(key)
        if known is not None:
            known.after = max(known.after, after) if after != UNKNOWN else UNKNOWN
        else:
            sessions[key] = Stray(connection, after)
        if not self._is_seeking:
            self._is_seeking = True
            self._tasks.start(self._seek())

    def forget(self, connection: ConnectionId) -> None:
        self._strays.pop(connection, None)

    async def settle(self, connection: Connection, key: SessionKey) -> int | None:
        """Return when the client follows the session again, and after which entry; None if it had not lost it.

        Raises why it cannot just now."""
        if connection.id not in self._strays:
            return None
        lock = self._locks.setdefault((connection.id, key), asyncio.Lock())
        async with lock:
            stray = self._strays.get(connection.id, {}).get(key)
            if stray is not None:
                await self._bring_back(connection, key, stray)
                self._remove(connection.id, key)
            return None if stray is None else stray.after

    async def _seek(self) -> None:
        try:
            while self._strays:
                await asyncio.sleep(self._every)
                await self._look()
        finally:
            self._is_seeking = False

    async def _look(self) -> None:
        waiting = [(key, stray) for sessions in self._strays.values() for key, stray in sessions.items()]
        try:
            owners = await self._directory.owners(list({key.stream for key, _ in waiting}))
        except StoreError:
            return
        for key, stray in waiting:
            owner = owners.get(key.stream)
            if owner is None or stray.connection.is_closed:  # the session is deleted, or nobody is there to be told
                self._remove(stray.connection.id, key)
            elif owner.is_alive and not stray.is_sought:
                stray.is_sought = True
                self._tasks.start(self._try(key, stray))

    async def _try(self, key: SessionKey, stray: Stray) -> None:
        try:
            await self.settle(stray.connection, key)
        except SandboxAgentError as error:
            _log.debug("a client cannot follow its session yet session=%s problem=%s", key.session, error)
        finally:
            stray.is_sought = False

    def _remove(self, connection: ConnectionId, key: SessionKey) -> None:
        sessions = self._strays.get(connection, {})
        sessions.pop(key, None)
        if not sessions:
            self._strays.pop(connection, None)
