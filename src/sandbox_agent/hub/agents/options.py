"""What is the same for every agent that a server runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox_agent.core.budget import Budget
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.process.child import StartChild


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    start_timeout: float
    stop_grace: float
    budget: Budget
    policy: PermissionPolicy
    """Who answers permissions in sessions that do not say."""
    line_bytes: int
    clean_stderr: Callable[[str, int], str]
    """Takes secrets out of a line that the agent wrote to stderr, and cuts it."""
    start_child: StartChild
    """Runs its program."""
