"""What it takes to start an agent process: the value that passes from the catalog to the launcher."""

from __future__ import annotations

from pathlib import Path

import msgspec

from sandbox_agent.core.ids import AgentId


class LaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A command line and the environment it may see beyond the allow-list."""

    agent: AgentId
    command: tuple[str, ...]
    env: dict[str, str] = {}
    env_passthrough: tuple[str, ...] = ()
    cwd: Path | None = None
    login: tuple[str, ...] = ()
    """The command by which a person logs the agent in, where it has one."""
