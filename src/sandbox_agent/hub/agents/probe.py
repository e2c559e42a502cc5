"""What an agent offers to choose from, asked by a session that nobody sees and that is gone afterwards."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.core import config_options
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.errors import AgentError, SandboxAgentError
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.store.base import Store

_PATIENCE = 30.0


class Offer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    models: list[dict[str, Any]]
    modes: list[dict[str, Any]]
    config_options: list[dict[str, Any]]


class Probe:
    """Asks each agent process once and remembers; a restarted process is asked again."""

    def __init__(self, agents: Agents, store: Store) -> None:
        self._agents = agents
        self._store = store
        self._known: dict[AgentId, tuple[int, Offer]] = {}
        self._asking: dict[AgentId, asyncio.Lock] = {}

    async def offer(self, agent_id: AgentId) -> Offer:
        """Starts the agent if need be. Raises AgentError, also when it does not answer in time."""
        async with self._asking.setdefault(agent_id, asyncio.Lock()):
            agent = await self._agents.started(agent_id)
            known = self._known.get(agent_id)
            if known is None or known[0] != agent.lifecycle.starts:
                known = self._known[agent_id] = (agent.lifecycle.starts, await self._ask(agent))
            return known[1]

    async def _ask(self, agent: Agent) -> Offer:
        with tempfile.TemporaryDirectory(prefix="sandbox-agent-probe-") as cwd:
            try:
                params = {"cwd": str(Path(cwd)), "mcpServers": []}
                result = await agent.request("session/new", params, timeout=_PATIENCE)
            except AgentError:
                raise
            except SandboxAgentError as error:
                raise AgentError(f"agent {agent.id!r} opened no session to ask: {error}") from None
            try:
                offered = config_options.from_answer(result)
            finally:
                await self._forget(agent, SessionId(result["sessionId"]))
        options = offered.get("configOptions")
        return Offer(
            models=config_options.choices(offered, "model"),
            modes=config_options.choices(offered, "mode"),
            config_options=options if isinstance(options, list) else [],
        )

    async def _forget(self, agent: Agent, session: SessionId) -> None:
        agent.forget(session, AgentError("asked for what there is to choose, and gone"))
        for verb in ("delete", "close"):
            if agent.can(verb):
                try:
                    await agent.request(f"session/{verb}", {"sessionId": session}, timeout=_PATIENCE)
                except SandboxAgentError:
                    continue  # it is forgotten here either way
                break
        await self._store.drop(SessionKey(agent.id, session).stream)
