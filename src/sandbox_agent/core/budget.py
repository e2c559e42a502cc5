"""How much others may make one relay hold. Beyond it they are refused with an error that says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    queued_prompts: int
    """Of one session."""
    open_requests: int
    """Of the agent, that nobody has answered."""
    open_request_bytes: int
    early_bytes: int
    """Updates that come before the answer that names their session."""
    tool_calls: int
    """Whose kind is remembered in a turn, for permissions that name only the call."""
