"""What can be asked about sessions, whoever asks: name one, make one, attach, wake, end, list, describe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, SessionName
from sandbox_agent.errors import UnknownSession
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.sessions import views
from sandbox_agent.hub.sessions.attach import Attach
from sandbox_agent.hub.sessions.end import End
from sandbox_agent.hub.sessions.establish import Establish
from sandbox_agent.hub.sessions.history import History
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.sessions.waking import Waking
from sandbox_agent.store.base import SessionRecord, Store


class Sessions:
    def __init__(self, store: Store, inventory: Inventory, agents: Agents, clients: Clients, turn_ids: TurnIds) -> None:
        self._inventory = inventory
        self._agents = agents
        self._clients = clients
        self._loading: dict[SessionKey, asyncio.Lock] = {}
        self.history = History(store)
        self.waking = Waking(agents, inventory)
        self.establish = Establish(agents, inventory, turn_ids)
        self.attach = Attach(store, inventory, agents, self.waking)
        self.end = End(agents, inventory)
        self.resolve = inventory.resolve
        self.look_up = inventory.look_up
        self.resolve_held = inventory.resolve_held
        self.held = inventory.held
        self.save = inventory.save
        self.page = inventory.page

    async def find(self, wanted: SessionName) -> SessionRecord | None:
        """As `resolve`, for one who goes on without."""
        try:
            return await self.resolve(wanted)
        except UnknownSession:
            return None

    async def live(self, record: SessionRecord) -> None:
        """Return when the running process holds the session. Raises why it cannot."""
        await self.waking.live(record.key)

    @asynccontextmanager
    async def loading(self, agent: AgentId, session: SessionId) -> AsyncIterator[None]:
        """One at a time may load a session that only the agent knows; the next one finds it known."""
        key = SessionKey(agent, session)
        lock = self._loading.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._loading.pop(key, None)

    def detach(self, connection_id: str, record: SessionRecord) -> None:
        connection = self._clients.find(connection_id)
        self._agents.get(record.agent).detach(connection.id, record.session_id)

    async def describe(self, record: SessionRecord) -> views.SessionDetail:
        agent = self._agents.find(record.agent)
        session = agent.sessions.get(record.session_id) if agent is not None else None
        attached = [self._clients[name] for name in session.attached if name in self._clients] if session else []
        return views.describe(
            record,
            session,
            attached,
            is_live=bool(session and session.is_live and agent is not None and agent.is_ready),
            last_activity=max(record.updated, await self.history.newest_time(record)),
        )
