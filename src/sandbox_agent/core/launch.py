"""What it takes to start an agent process: the value that passes from the catalog to the launcher."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.versions import Version

Isolation = Literal["process", "session"]
"""What the sessions of an agent share: one process, or nothing (a process for each session)."""


class LaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A command line and the environment it may see beyond the allow-list."""

    agent: AgentId
    command: tuple[str, ...]
    env: dict[str, str] = {}
    env_passthrough: tuple[str, ...] = ()
    cwd: Path | None = None
    login: tuple[str, ...] = ()
    """The command by which a person logs the agent in, where it has one."""
    auth_keys: dict[str, tuple[str, ...]] = {}
    """Auth methods of the agent that a variable in its environment satisfies, and which."""
    login_env: tuple[str, ...] = ()
    """The variables that spare a login. Empty: those of `env_passthrough` that look like keys."""
    advice: dict[str, str] = {}
    """What to do about errors of the agent that contain certain words."""
    protocol_version: Version | None = None
    """The version of ACP to speak with it; None for the highest that both know."""
