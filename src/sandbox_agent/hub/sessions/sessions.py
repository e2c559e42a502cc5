"""What can be asked about sessions, whoever asks: name one, make one, attach, wake, end, list, describe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, SessionName
from sandbox_agent.errors import UnknownSession
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.directories.directories import Directories
from sandbox_agent.hub.quotas import Quotas
from sandbox_agent.hub.sessions import views
from sandbox_agent.hub.sessions.attach import Attach
from sandbox_agent.hub.sessions.end import End
from sandbox_agent.hub.sessions.establish import Establish
from sandbox_agent.hub.sessions.growth import Growth
from sandbox_agent.hub.sessions.history import History
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.naming import Naming
from sandbox_agent.hub.sessions.search import Search
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.sessions.waking import Waking
from sandbox_agent.store.base import SessionRecord, Store


class Sessions:
    def __init__(
        self,
        store: Store,
        inventory: Inventory,
        agents: Agents,
        clients: Clients,
        turn_ids: TurnIds,
        directories: Directories,
        quotas: Quotas,
    ) -> None:
        self._inventory = inventory
        self._agents = agents
        self._clients = clients
        self._loading: dict[SessionKey, asyncio.Lock] = {}
        self.history = History(store)
        self.growth = Growth()
        self.search = Search(store, inventory)
        naming = Naming()
        self.waking = Waking(agents, inventory, naming, directories)
        self.end = End(agents, inventory, clients, turn_ids)
        self.establish = Establish(agents, inventory, turn_ids, self.end, naming, self.waking.live, directories, quotas)
        self.attach = Attach(store, inventory, agents, self.waking)
        self.resolve = inventory.resolve
        self.look_up = inventory.look_up
        self.resolve_held = inventory.resolve_held
        self.held = inventory.held
        self.require = inventory.require
        self.all_held = inventory.all_held
        self.lose = inventory.lose
        self.origin = inventory.origin
        self.save = inventory.save
        self.page = inventory.page
        self.safe = inventory.safe

    async def find(self, wanted: SessionName) -> SessionRecord | None:
        """As `resolve`, for one who goes on without."""
        try:
            return await self.resolve(wanted)
        except UnknownSession:
            return None

    async def find_record(self, wanted: SessionName) -> SessionRecord | None:
        """As `look_up`, for one who goes on without."""
        try:
            return await self.look_up(wanted)
        except UnknownSession:
            return None

    async def live(self, record: SessionRecord) -> None:
        """Return when the running process holds the session. Raises why it cannot."""
        await self.waking.live(record.key)
        self.require(record)

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

    def detach(self, connection: Connection, record: SessionRecord) -> None:
        """Raises UnknownConnection when it has been closed meanwhile."""
        self._clients.find(connection.id, connection.user)
        self._agents.of(record.key).detach(connection.id, record.session_id)

    def describe_anew(self, record: SessionRecord) -> None:
        """A client has changed what is said of the session: keep it, and tell everybody attached."""
        self.save(record)
        self._agents.of(record.key).publish(record.session_id, views.info_update(record))

    def take_back(self, record: SessionRecord, prompt_id: str) -> bool:
        """Take a prompt out of the queue, whoever sent it; False if it runs already, or never waited there."""
        agent = self._agents.found(record.key)
        return agent is not None and agent.take_back(record.session_id, prompt_id)

    async def describe(self, record: SessionRecord) -> views.SessionDetail:
        agent = self._agents.found(record.key)
        session = agent.sessions.get(record.session_id) if agent is not None else None
        attached = [self._clients[name] for name in session.attached if name in self._clients] if session else []
        return views.describe(
            record,
            session,
            attached,
            is_live=bool(session and session.is_live and agent is not None and agent.is_ready),
            last_activity=max(record.updated, await self.history.newest_time(record)),
        )
