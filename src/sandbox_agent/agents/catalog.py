"""The agents this server knows: the built-in one and those of the user's config."""

from __future__ import annotations

import sys

import msgspec

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.errors import UnknownAgent

MOCK = AgentId("mock")


class CustomAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[agents.NAME]` table of the config file."""

    command: tuple[str, ...]
    env: dict[str, str] = {}
    env_passthrough: tuple[str, ...] = ()


class Catalog:
    def __init__(self, custom: dict[str, CustomAgent]) -> None:
        self._specs = {
            MOCK: LaunchSpec(
                agent=MOCK,
                command=(sys.executable, "-m", "sandbox_agent.mock_agent"),
                env_passthrough=("SANDBOX_AGENT_MOCK_STATE",),
            )
        }
        for name, agent in custom.items():
            self._specs[AgentId(name)] = LaunchSpec(
                agent=AgentId(name),
                command=agent.command,
                env=agent.env,
                env_passthrough=agent.env_passthrough,
            )

    def ids(self) -> list[AgentId]:
        return list(self._specs)

    async def ensure(self, agent: AgentId) -> LaunchSpec:
        """How to launch `agent`, installed if need be. Raises UnknownAgent."""
        try:
            return self._specs[agent]
        except KeyError:
            raise UnknownAgent(agent, known=sorted(self._specs)) from None
