"""--model and --mode: a value that the agent does not offer is an error that lists what it does offer."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox_agent.client.session import Session
from sandbox_agent.core.config_options import Category, choices
from sandbox_agent.core.frames import META
from sandbox_agent.errors import InvalidParams

_REPORTED: dict[Category, str] = {"model": "model", "mode": "agentMode"}
"""Where the server says what became of a choice: a member of our part of `_meta` in its answer."""


async def refuse_what_was_not_applied(session: Session, wanted: Mapping[str, str]) -> None:
    """For a session that was just created: if it is not as `wanted`, end it. Raises InvalidParams."""
    told = (session.setup.get("_meta") or {}).get(META) or {}
    for category, member in _REPORTED.items():
        if category in wanted and (told.get(member) or {}).get("applied") is False:
            await session.terminate()
            raise InvalidParams(_complaint(session, category, wanted[category], str(told[member].get("reason"))))


def _complaint(session: Session, category: Category, value: str, reason: str) -> str:
    offered = [str(choice["id"]) for choice in choices(session.setup, category)]
    if value in offered or not offered:
        return f"--{category} {value}: {reason}"
    return f"agent {session.agent!r} has no {category} {value!r}; available: {', '.join(offered)}"
