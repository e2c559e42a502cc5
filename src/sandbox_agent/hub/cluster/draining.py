"""Draining: a node hands its sessions on, each when no turn of it runs any more, and takes no others."""

from __future__ import annotations

import asyncio
import logging

from sandbox_agent.core.ids import SessionKey
from sandbox_agent.errors import StoreError
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.postgres.store import PostgresStore

_LOOK = 0.1
_log = logging.getLogger(__name__)


class Draining:
    def __init__(self, hub: Hub, store: PostgresStore, *, patience: float, hands_on: bool) -> None:
        """Without `hands_on` sessions stay where their files are: only their turns are waited for."""
        self._hands_on = hands_on
        self._hub = hub
        self._store = store
        self._patience = patience
        self._task: asyncio.Task[None] | None = None
        store.directory.on_beat = self._look

    async def finish(self) -> None:
        """Hand all sessions on before this node stops; returns when they are, or their turns have had their time."""
        self._store.directory.is_stopping = True
        self._look()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=self._patience + 1.0)

    def _look(self) -> None:
        """Begin or end what the database says: somebody may have changed it at any node."""
        if self._store.directory.is_draining and self._task is None:
            self._task = self._hub.tasks.start(self._run())
        elif not self._store.directory.is_draining and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        end = asyncio.get_running_loop().time() + self._patience
        _log.info("draining sessions=%d", len(self._hub.sessions.all_held()))
        while not self._hands_on:
            if asyncio.get_running_loop().time() > end or not any(map(self._is_busy, self._hub.sessions.all_held())):
                return
            await asyncio.sleep(_LOOK)
        try:
            await self._store.release_unused()
        except StoreError as error:
            _log.warning("unused sessions are not handed on problem=%s", error)
        while held := self._hub.sessions.all_held():
            is_late = asyncio.get_running_loop().time() > end
            for key in held:
                if is_late or not self._is_busy(key):
                    await self._hand_on(key)
            await asyncio.sleep(_LOOK)
        _log.info("drained")

    def _is_busy(self, key: SessionKey) -> bool:
        agent = self._hub.agents.found(key)
        session = agent.sessions.get(key.session) if agent is not None else None
        return session is not None and (session.is_at_work or not session.is_idle)

    async def _hand_on(self, key: SessionKey) -> None:
        try:
            await self._store.release(key.stream)
        except StoreError as error:
            _log.warning("session not handed on session=%s problem=%s", key.session, error)
            return
        self._hub.sessions.lose(key)  # one that was only looked at: nobody else has told
        await self._hub.agents.let_go(key)
