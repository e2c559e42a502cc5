"""The agents that are in use, and the processes that hold their sessions: made on first use, shared by all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import msgspec

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.launch import Isolation
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.installs import Installs
from sandbox_agent.hub.agents.processes import MakeAgent, Processes, SessionProcesses, SharedProcesses, Tally

_REMEMBERED = 1000
"""Agents whose isolation need not be looked up: it does not change. Names may be invented, so there is a bound."""


class Agents:
    def __init__(
        self,
        installs: Installs,
        make: MakeAgent,
        *,
        isolation: Callable[[AgentId], Isolation],
        session_processes: int,
    ) -> None:
        self._installs = installs
        self._isolation = isolation
        self._of_sessions = SessionProcesses(make, installs.ensure, limit=session_processes)
        self._processes: dict[Isolation, Processes] = {
            "process": SharedProcesses(make, installs.ensure),
            "session": self._of_sessions,
        }
        self._by_agent: dict[AgentId, Processes] = {}

    def __iter__(self) -> Iterator[Agent]:
        """Every process that we have or had, whatever agent it is of."""
        return (agent for processes in self._processes.values() for agent in processes)

    def ids(self) -> list[AgentId]:
        """The agents that are or were in use."""
        return list(dict.fromkeys(agent.id for agent in self))

    def all_of(self, agent_id: AgentId) -> list[Agent]:
        return self._kept(agent_id).all_of(agent_id)

    def tally(self, agent_id: AgentId) -> Tally:
        return self._kept(agent_id).tally(agent_id)

    def run_of(self, agent_id: AgentId) -> int:
        """Another number than before if what the agent said of itself may have changed."""
        return self._kept(agent_id).run_of(agent_id)

    def are_apart(self, agent_id: AgentId) -> bool:
        """Whether each of its sessions has a process of its own."""
        return self._kept(agent_id) is self._of_sessions

    def front(self, agent_id: AgentId) -> Agent:
        """The process for what concerns no session. A name from outside goes through `started` first."""
        return self._kept(agent_id).front(agent_id)

    def of(self, key: SessionKey) -> Agent:
        """The process that holds the session, or will hold it when it is woken."""
        return (self._by_agent.get(key.agent) or self._kept(key.agent)).of(key)

    def found(self, key: SessionKey) -> Agent | None:
        """As `of`, if it is there already."""
        return (self._by_agent.get(key.agent) or self._kept(key.agent)).found(key)

    def knowing(self, agent_id: AgentId, session: SessionId) -> Agent | None:
        """The process in which the session is under way, or rests since it was."""
        agent = (self._by_agent.get(agent_id) or self._kept(agent_id)).knowing(agent_id, session)
        return agent if agent is not None and session in agent.sessions else None

    async def started(self, agent_id: AgentId) -> Agent:
        """Installed if need be, a process running. Raises UnknownAgent, InstallError, AgentStartFailed, Overloaded."""
        await self._installs.ensure(agent_id)  # however long that takes: no limit holds for it
        agent = self.front(agent_id)
        await agent.ready()
        return agent

    async def versions(self, agent: Agent) -> set[str]:
        """Every version that it goes by: what the process says of itself, and what was installed."""
        listing = await asyncio.to_thread(self._installs.describe, agent.id)
        handshake = msgspec.json.decode(agent.handshake)
        told = [as_object(handshake.get(name)).get("version") for name in ("agentInfo", "info")]  # ACP 1 and 2
        named = [*told, listing.version, *(artifact.version for artifact in listing.artifacts)]
        return {version for version in named if isinstance(version, str)}

    @asynccontextmanager
    async def making(self, agent_id: AgentId, parent: SessionKey | None = None) -> AsyncIterator[Agent]:
        """A running process that may make a session; one that is to be kept is told to `made`. Raises as `started`."""
        await self._installs.ensure(agent_id)
        processes = self._kept(agent_id)
        agent = processes.take(agent_id, parent)
        is_used = False
        try:
            await agent.ready()
            yield agent
            is_used = True
        finally:
            await processes.gave_back(agent, is_used=is_used)

    async def made(self, agent: Agent, key: SessionKey) -> None:
        """`agent` has made this session, and it is kept: `of` gives its process from this step on."""
        await self._kept(key.agent).made(agent, key)

    def adopted(self, agent: Agent, key: SessionKey) -> None:
        """`agent` has made this session by itself, as part of one that it holds: `of` gives its process."""
        self._kept(key.agent).adopted(agent, key)

    async def let_go(self, key: SessionKey) -> None:
        """The session is closed, ended or deleted: nothing need run for it."""
        await self._kept(key.agent).let_go(key)

    async def rest_idle(self, before: float) -> list[Agent]:
        """End processes of single sessions that nothing has happened in since `before`; gives those that were ended."""
        return await self._of_sessions.rest_idle(before)

    @property
    def running(self) -> list[AgentId]:
        return list(dict.fromkeys(agent.id for agent in self if agent.is_ready))

    def _kept(self, agent_id: AgentId) -> Processes:
        kept = self._by_agent.get(agent_id)
        if kept is None:
            kept = self._processes[self._isolation(agent_id)]
            if len(self._by_agent) < _REMEMBERED:
                self._by_agent[agent_id] = kept
        return kept
