"""What is done about effects that reach beyond one agent's pipe and its clients' streams."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from sandbox_agent.agents import Progress
from sandbox_agent.core import effects as fx
from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.methods import TERMINAL_OUTPUT
from sandbox_agent.errors import AgentExited, SandboxAgentError
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.agents.status import server_status
from sandbox_agent.hub.agents.terminals import Tell
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.items import Items
from sandbox_agent.hub.sessions.sessions import Sessions
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.tasks import Tasks

_FEED_TYPES = {
    "turn_queued": "turn.queued",
    "turn_started": "turn.started",
    "turn_ended": "turn.ended",
    "asked": "question.asked",
    "settled": "question.settled",
}


_UNREAD = 60.0
"""Seconds that an answer with a file in it waits for an agent that does not read."""


class Watch:
    """Stands behind every agent's delivery."""

    def __init__(
        self,
        agents: Agents,
        clients: Clients,
        inventory: Inventory,
        sessions: Sessions,
        turn_ids: TurnIds,
        items: Items,
        host: Host,
        feed: Feed,
        tasks: Tasks,
        *,
        unattended: float | None,
    ) -> None:
        self._agents = agents
        self._clients = clients
        self._inventory = inventory
        self._sessions = sessions
        self._turn_ids = turn_ids
        self._items = items
        self._host = host
        self._feed = feed
        self._tasks = tasks
        self._unattended = unattended

    def observed(self, key: SessionKey, kind: str, line: bytes) -> None:
        self._inventory.observe(key, kind, line)

    def prompt_answered(self, agent: AgentId, effect: fx.Reply) -> None:
        self._turn_ids.answered(effect.connection, effect.ticket, effect.line, has_run=effect.has_run)
        if effect.session is None or not effect.has_run:
            return
        key = SessionKey(agent, effect.session)
        working = self._agents.get(agent)
        working.lifecycle.worked()
        record = self._inventory.held(key)
        if record is not None:
            self._inventory.save(record)
        if self._clients.has_item_listeners:
            listeners = lambda: self._clients.item_listeners(working.sessions.get(key.session))  # noqa: E731
            self._tasks.start(self._items.tell(key, listeners))
        else:
            self._items.skip(key)

    def noticed(self, agent: AgentId, effect: fx.Notice) -> None:
        self._feed.tell(
            _FEED_TYPES[effect.name], lambda: {"agent": agent, "sessionId": effect.session, **effect.params}
        )

    def replayed(self, key: SessionKey) -> None:
        self._sessions.waking.replayed(key)

    def wake(self, key: SessionKey) -> None:
        self._tasks.start(self._sessions.waking.wake(key))

    def unattended(self, agent: AgentId, ask: int) -> None:
        if self._unattended is not None:
            asyncio.get_running_loop().call_later(self._unattended, self._agents.get(agent).expire, ask)

    def serve(self, agent: AgentId, effect: fx.Serve) -> None:
        self._tasks.start(self._serve(self._agents.get(agent), effect))

    def exited(self, agent: Agent, error: AgentExited, sessions: list[SessionId]) -> None:
        for connection in self._clients.values():
            if connection.agent == agent.id:
                connection.agent_exited(error)
        self._sessions.end.process_lost(agent, error, sessions)

    def changed(self, agent: Agent) -> None:
        self._feed.tell("agent.changed", lambda: {"agent": agent.id, "serverStatus": server_status(agent)})

    def installing(self, agent: AgentId, progress: Progress) -> None:
        self._feed.tell("install.progress", lambda: {"agent": agent, "progress": progress})

    async def _serve(self, agent: Agent, effect: fx.Serve) -> None:
        record = self._inventory.held(SessionKey(agent.id, effect.session)) if effect.session is not None else None
        tell = partial(self._tell_terminal, agent, effect.session) if effect.session is not None else None
        cwd = record.cwd if record else None
        if not effect.method.startswith("fs/"):
            agent.served(effect.ask, await self._member(effect, cwd, tell))
            return
        async with agent.large_answers:  # what an agent asks for and does not read must not pile up here
            try:
                await agent.room(timeout=_UNREAD)
            except SandboxAgentError as error:
                agent.served(effect.ask, _failed(error))
            else:
                agent.served(effect.ask, await self._member(effect, cwd, tell))

    async def _member(self, effect: fx.Serve, cwd: str | None, tell: Tell | None) -> bytes:
        try:
            return b'"result":%b' % frames.to_json(await self._host.serve(effect.method, effect.params, cwd, tell))
        except SandboxAgentError as error:
            return _failed(error)

    def _tell_terminal(self, agent: Agent, session: SessionId, news: dict[str, Any]) -> None:
        agent.publish(session, frames.notification(TERMINAL_OUTPUT, {"sessionId": session, **news}))


def _failed(error: SandboxAgentError) -> bytes:
    return b'"error":%b' % frames.to_json({"code": error.code, "message": error.detail})
