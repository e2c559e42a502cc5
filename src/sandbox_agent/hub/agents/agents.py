"""The agents that are in use: one of each, made on first use, shared by all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sandbox_agent.core.ids import AgentId
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.installs import Installs


class Agents:
    def __init__(self, installs: Installs, make: Callable[[AgentId], Agent]) -> None:
        self._installs = installs
        self._make = make
        self._made: dict[AgentId, Agent] = {}

    def __iter__(self) -> Iterator[Agent]:
        return iter(list(self._made.values()))

    def find(self, agent_id: AgentId) -> Agent | None:
        return self._made.get(agent_id)

    def get(self, agent_id: AgentId) -> Agent:
        """The agent of a session or connection that we have. A name from outside goes through `started` first."""
        found = self._made.get(agent_id)
        if found is None:
            found = self._made[agent_id] = self._make(agent_id)
        return found

    async def started(self, agent_id: AgentId) -> Agent:
        """Installed if need be, its process running. Raises UnknownAgent, InstallError, AgentStartFailed."""
        await self._installs.ensure(agent_id)  # however long that takes: no limit holds for it
        agent = self.get(agent_id)
        await agent.ready()
        return agent

    @property
    def running(self) -> list[Agent]:
        return [agent for agent in self if agent.is_ready]
