"""The catalog as the API shows it: facts about an agent, and the outcome of an install."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec

from sandbox_agent.agents import Catalog
from sandbox_agent.core.ids import AgentId
from sandbox_agent.version import __version__

Source = Literal["registry", "fallback", "path", "builtin", "custom"]


class AgentFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`source` is where what is installed came from, `verified` whether it spoke ACP when it was installed."""

    id: str
    name: str
    installed: bool
    version: str | None = None
    path: str | None = None
    source: Source | None = None
    verified: bool = False
    credentials_available: bool = False
    instructions: str = ""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """In the spelling of the old API, which clients in use still read."""

    already_installed: bool
    artifacts: list[dict[str, Any]]


async def describe_agent(catalog: Catalog, agent: AgentId) -> AgentFacts:
    """Raises UnknownAgent."""
    describe = getattr(catalog, "describe", None)
    if describe is not None:
        return msgspec.convert(msgspec.to_builtins(await asyncio.to_thread(describe, agent)), AgentFacts)
    spec = await catalog.ensure(agent)
    is_builtin = agent == "mock"
    return AgentFacts(
        id=agent,
        name=agent,
        installed=True,
        version=__version__ if is_builtin else None,
        path=spec.command[0],
        source="builtin" if is_builtin else "custom",
        verified=is_builtin,
        credentials_available=True,
    )


async def install_agent(catalog: Catalog, agent: AgentId, **wishes: Any) -> Installed:
    """Raises UnknownAgent, InvalidParams, InstallError."""
    install = getattr(catalog, "install", None)
    if install is not None:
        result = await install(agent, **wishes)
        return Installed(
            already_installed=result.already_installed, artifacts=[msgspec.to_builtins(a) for a in result.artifacts]
        )
    await catalog.ensure(agent)
    return Installed(already_installed=True, artifacts=[])
