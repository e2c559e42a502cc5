"""`_sandboxagent/agent/*`: which agents there are, and installing them, for clients that speak ACP only."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from sandbox_agent.agents import InstallWish, Progress
from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.agents.installs import AgentCatalog, Installs
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.extensions.extensions import Method

PROGRESS = "_sandboxagent/agent/install_progress"


class _Install(InstallWish, frozen=True, kw_only=True, rename="camel"):
    agent: str


class AgentExtensions:
    def __init__(self, catalog: AgentCatalog, installs: Installs, agents: Agents) -> None:
        self._catalog = catalog
        self._installs = installs
        self._agents = agents
        self.methods: dict[str, Method] = {
            "_sandboxagent/agent/list": self._list,
            "_sandboxagent/agent/install": self._install,
        }

    async def _list(self, request: Request) -> dict[str, Any]:
        listings = await asyncio.to_thread(lambda: [self._catalog.describe(agent) for agent in self._catalog.ids()])
        agents = []
        for listing in listings:
            more = {
                "running": listing.id in self._agents.running,
                "installing": self._installs.latest(AgentId(listing.id)),
            }
            agents.append({**msgspec.to_builtins(listing), **more})
        return {"agents": agents}

    async def _install(self, request: Request) -> dict[str, Any]:
        """Whoever asked is told of the progress by notifications on its stream."""
        wanted = request.read(_Install)
        wish = InstallWish(wanted.reinstall, wanted.agent_version, wanted.agent_process_version)

        def tell(progress: Progress) -> None:
            if not request.connection.is_closed:
                request.connection.deliver_own(None, frames.notification(PROGRESS, progress))

        result = await self._installs.install(AgentId(wanted.agent), wish, tell)
        return {**msgspec.to_builtins(result), "already_installed": result.already_installed}
