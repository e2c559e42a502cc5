"""Which session `run` works in: a new one, a given one, the newest of this directory, or one with a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sandbox_agent.errors import InvalidParams, NotFound, UnknownSession

if TYPE_CHECKING:
    from sandbox_agent.client.sandbox import SandboxAgent
    from sandbox_agent.client.session import Session


@dataclass(frozen=True, slots=True)
class WantedSession:
    agent: str | None
    cwd: str
    resume: str | None = None
    name: str | None = None
    """An alias: resumed if there is a session of that name, else given to a new one."""
    is_newest: bool = False
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Model, mode, title and permission mode."""


async def open_session(sandbox: SandboxAgent, wanted: WantedSession) -> Session:
    """Raises UnknownSession, NotFound, InvalidParams."""
    if wanted.resume is not None:
        return await _resume(sandbox, wanted, wanted.resume, wanted.agent)
    if wanted.is_newest:
        query = {"agent": wanted.agent, "cwd": wanted.cwd, "ended": False, "limit": 1}
        for known in (await sandbox.api.get("/v1/sessions", **query))["sessions"]:
            return await _resume(sandbox, wanted, known["sessionId"], known["agent"])
        raise NotFound(f"there is no open session in {wanted.cwd} to continue")
    if wanted.name is not None:
        try:
            known = await sandbox.api.get(f"/v1/sessions/{quote(wanted.name, safe='')}", agent=wanted.agent)
        except UnknownSession:
            return await _create(sandbox, wanted, session_id=wanted.name)
        return await _resume(sandbox, wanted, known["sessionId"], known["agent"])
    return await _create(sandbox, wanted)


async def _create(sandbox: SandboxAgent, wanted: WantedSession, **alias: Any) -> Session:
    if wanted.agent is None:
        raise InvalidParams(f"there is no session {wanted.name!r} yet: give --agent to create it")
    return await sandbox.create_session(agent=wanted.agent, cwd=wanted.cwd, **wanted.choices, **alias)


async def _resume(sandbox: SandboxAgent, wanted: WantedSession, session_id: str, agent: str | None) -> Session:
    if "permission_mode" in wanted.choices:
        raise InvalidParams("a session keeps the permission mode that it was created with: --approve is for a new one")
    session = await sandbox.resume_session(session_id, agent=agent)
    if "model" in wanted.choices:
        await session.set_model(wanted.choices["model"])
    if "mode" in wanted.choices:
        await session.set_mode(wanted.choices["mode"])
    return session
