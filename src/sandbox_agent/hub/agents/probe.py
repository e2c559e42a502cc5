"""What an agent offers to choose from, asked by a session that nobody sees and that is gone afterwards."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.core import config_options
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.json_values import Object, as_list, as_object
from sandbox_agent.errors import AgentError, SandboxAgentError
from sandbox_agent.history.entries import read_envelope
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.sessions.growth import Growth
from sandbox_agent.store.base import SessionFilter, Store

_PATIENCE = 30.0
_ANNOUNCEMENT = 0.5
"""Seconds in which an agent announces its commands, once it has opened a session; some have none."""
_ENTRIES = 100


class Offer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    models: list[dict[str, Any]]
    modes: list[dict[str, Any]]
    config_options: list[dict[str, Any]]


class Probe:
    """Asks each agent once and remembers; one whose shared process was started again is asked again."""

    def __init__(self, agents: Agents, store: Store, growth: Growth) -> None:
        self._agents = agents
        self._store = store
        self._growth = growth
        self._commands: dict[AgentId, list[Object]] = {}
        self._known: dict[AgentId, tuple[int, Offer]] = {}
        self._asking: dict[AgentId, asyncio.Lock] = {}

    async def offer(self, agent_id: AgentId) -> Offer:
        """Starts the agent if need be. Raises AgentError, also when it does not answer in time."""
        async with self._asking.setdefault(agent_id, asyncio.Lock()):
            known = self._known.get(agent_id)
            if known is None or known[0] != self._agents.run_of(agent_id):
                async with self._agents.making(agent_id) as agent:
                    known = self._known[agent_id] = (self._agents.run_of(agent_id), await self._ask(agent))
            return known[1]

    async def remembered(self, agent_id: AgentId) -> Offer | None:
        """What it offered when it was last asked, or to the newest session that we know of. Starts nothing."""
        known = self._known.get(agent_id)
        if known is not None:
            return known[1]
        page = await self._store.list_sessions(SessionFilter(agent=agent_id), limit=1)
        offered = page.sessions[0].offered if page.sessions else {}
        return _offer(offered) if offered else None

    def commands(self, agent_id: AgentId) -> list[Object]:
        """The slash commands that it announced when it was last asked, in ACP's words."""
        return self._commands.get(agent_id, [])

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
                self._commands[agent.id] = await self._announced(agent.key(SessionId(result["sessionId"])))
            finally:
                await self._forget(agent, SessionId(result["sessionId"]))
        return _offer(offered)

    async def _announced(self, key: SessionKey) -> list[Object]:
        """The commands that are told in the session, shortly after it was opened."""
        grown = asyncio.Event()
        leave = self._growth.follow(lambda session, first: grown.set() if session == key else None)
        after = 0
        try:
            async with asyncio.timeout(_ANNOUNCEMENT):
                while True:
                    for entry in await self._store.read(key.stream, after=after, limit=_ENTRIES):
                        after = entry.sequence
                        envelope = read_envelope(entry.envelope)
                        update = as_object(envelope.params.get("update")) if envelope is not None else {}
                        if update.get("sessionUpdate") == "available_commands_update":
                            return [as_object(command) for command in as_list(update.get("availableCommands"))]
                    await grown.wait()
                    grown.clear()
        except TimeoutError:
            return []
        finally:
            leave()

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


def _offer(offered: dict[str, Any]) -> Offer:
    options = offered.get("configOptions")
    return Offer(
        models=config_options.choices(offered, "model"),
        modes=config_options.choices(offered, "mode"),
        config_options=options if isinstance(options, list) else [],
    )
