"""The agents of a server: which there are, and how to get more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox_agent.client.api import Api

_INSTALL = 1800.0

AgentInfo = dict[str, Any]
Progress = Callable[[dict[str, Any]], None]


class Agents:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(self) -> list[AgentInfo]:
        answer = await self._api.get("/v1/agents")
        agents: list[AgentInfo] = answer["agents"] if isinstance(answer, dict) else answer
        return agents

    async def get(self, agent: str, *, config: bool = False) -> AgentInfo:
        """One agent. With `config` it is started, if need be, to say its models, modes and options."""
        found: AgentInfo = await self._api.get(f"/v1/agents/{agent}", config=True if config else None)
        return found

    async def install(
        self,
        agent: str,
        *,
        reinstall: bool = False,
        agent_version: str | None = None,
        agent_process_version: str | None = None,
    ) -> dict[str, Any]:
        """Install it unless it is there. Gives what was installed, from where and which version."""
        wanted = {
            "reinstall": reinstall,
            "agentVersion": agent_version,
            "agentProcessVersion": agent_process_version,
        }
        body = {name: value for name, value in wanted.items() if value}
        done: dict[str, Any] = await self._api.post(f"/v1/agents/{agent}/install", body=body, timeout=_INSTALL)
        return done
