"""Model and mode of a new session: one that the agent does not offer is an error that lists what it does offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox_agent.core.config_options import Category, choices, from_answer
from sandbox_agent.core.frames import META
from sandbox_agent.errors import InvalidParams

_REPORTED: dict[Category, str] = {"model": "model", "mode": "agentMode"}
"""Where the server says what became of a choice: a member of our part of `_meta` in its answer."""


def not_applied(answer: Mapping[str, Any], agent: str, wanted: Mapping[str, Any]) -> InvalidParams | None:
    """What is wrong with the first of the choices that the server could not apply."""
    told = (answer.get("_meta") or {}).get(META) or {}
    for category, member in _REPORTED.items():
        if category in wanted and (told.get(member) or {}).get("applied") is False:
            return InvalidParams(_complaint(answer, agent, category, wanted[category], str(told[member].get("reason"))))
    return None


def _complaint(answer: Mapping[str, Any], agent: str, category: Category, value: Any, reason: str) -> str:
    offered = [str(choice["id"]) for choice in choices(from_answer(answer), category)]
    if value in offered or not offered:
        return f"{category} {value!r}: {reason}"
    return f"agent {agent!r} has no {category} {value!r}; available: {', '.join(offered)}"
