"""What a config file says of an agent. Every command reads that, so it is all that this module imports."""

from __future__ import annotations

import msgspec

from sandbox_agent.core.launch import Isolation
from sandbox_agent.core.versions import Version


class CustomAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[agents.NAME]` table of the config file.

    Without `command` it adds to the agent of that name: more environment, or another `version` to install.
    """

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_passthrough: tuple[str, ...] = ()
    auth_keys: dict[str, tuple[str, ...]] = {}
    login: tuple[str, ...] = ()
    name: str | None = None
    version: str | None = None
    protocol_version: Version | None = None
    """The version of ACP to speak with it; without it, the highest that both know."""
    isolation: Isolation | None = None
    """What its sessions share. For a `command` of yours nothing, unless this says otherwise."""
    skills: str | None = None
    """Where in a working directory it looks for skills, such as `.agents/skills`."""
