"""The agents of a server: which there are, and how to get more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sandbox_agent.client.api import Api
from sandbox_agent.client.rpc.problems import from_problem
from sandbox_agent.client.rpc.sse import EventParser
from sandbox_agent.errors import ConnectionLost

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
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Install it unless it is there. Gives what was installed, from where and which version.

        `progress` gets each step as it happens: agent, step, message, fraction (or None), bytes."""
        wanted = {
            "reinstall": reinstall,
            "agentVersion": agent_version,
            "agentProcessVersion": agent_process_version,
        }
        body = {name: value for name, value in wanted.items() if value}
        path = f"/v1/agents/{agent}/install"
        if progress is not None:
            return await self._install_telling(path, body, progress)
        done: dict[str, Any] = await self._api.post(path, body=body, timeout=_INSTALL)
        return done

    async def _install_telling(self, path: str, body: dict[str, Any], progress: Progress) -> dict[str, Any]:
        parser = EventParser()
        headers = {"Accept": "text/event-stream"}
        async with self._api.stream(path, verb="POST", body=body, headers=headers) as response:
            async for chunk in response.aiter_bytes():
                for event in parser.feed(chunk):
                    told = msgspec.json.decode(event.data)
                    if event.kind == "done":
                        return dict(told)
                    if event.kind == "error":
                        raise from_problem(told)
                    progress(told)
        raise ConnectionLost(f"the server ended the answer to {path} before the install had ended")
