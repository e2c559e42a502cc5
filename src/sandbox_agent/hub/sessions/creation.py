"""Making a session: the fields that ACP lacks, and the choices applied once the session is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sandbox_agent.core import config_options as setup
from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.mcp_servers import convert_mcp_servers
from sandbox_agent.core.permission_policy import NAMED_POLICIES, PermissionPolicy, parse_policy
from sandbox_agent.errors import AgentError, InvalidParams, SandboxAgentError
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.store.base import SessionRecord

_CONFIGURE_TIMEOUT = 30.0


class Wishes(msgspec.Struct, rename="camel"):
    """Our part of `_meta` in session/new."""

    agent: str | None = None
    requested_session_id: str | None = None
    agent_version_requested: str | None = None
    title: str | None = None
    skills: Any = None
    permission_mode: Any = None
    model: str | None = None
    agent_mode: str | None = None
    mcp: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}


def read_wishes(request: Request) -> Wishes:
    """Raises InvalidParams naming the field that is wrong."""
    try:
        wishes = msgspec.convert(request.meta(), Wishes)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"params._meta[{META!r}] of {request.method}: {error}") from None
    if wishes.requested_session_id is not None and not wishes.requested_session_id.strip():
        raise InvalidParams("requestedSessionId must not be empty")
    return wishes


def agent_params(request: Request, wishes: Wishes, environ: Mapping[str, str]) -> dict[str, Any]:
    """What the agent gets: the client's params, with MCP servers in ACP's form."""
    params = request.params()
    legacy = wishes.mcp if wishes.mcp is not None else params.get("mcpServers")
    if isinstance(legacy, dict):
        params["mcpServers"] = convert_mcp_servers(legacy, environ)
    params.setdefault("mcpServers", [])
    return params


def policy_of(wishes: Wishes, default: PermissionPolicy) -> PermissionPolicy:
    """The session's permission policy. A name that is none of ours may be a mode of the agent: see `apply_choices`."""
    wanted = wishes.permission_mode
    if wanted is None or (isinstance(wanted, str) and wanted not in NAMED_POLICIES):
        return default
    return parse_policy(wanted)


def new_record(agent: Agent, params: dict[str, Any], wishes: Wishes, result: Any) -> SessionRecord:
    """Raises AgentError when the agent's answer names no session."""
    session = result.get("sessionId") if isinstance(result, dict) else None
    if not isinstance(session, str):
        raise AgentError(f"agent {agent.id!r} made a session and did not name it", answer=result)
    named = {"title": wishes.title, "agentVersionRequested": wishes.agent_version_requested}
    extra = {name: value for name, value in named.items() if value is not None}
    return SessionRecord(
        agent=agent.id,
        session_id=SessionId(session),
        alias=wishes.requested_session_id,
        cwd=params.get("cwd"),
        title=wishes.title,
        mcp_servers=params.get("mcpServers") or [],
        skills=wishes.skills,
        permission_mode=_mode_text(wishes.permission_mode),
        metadata={**wishes.metadata, **extra},
        setup=setup.from_answer(result),
    )


def _mode_text(mode: Any) -> str | None:
    """As it is kept in the record: a name, or the rules as JSON."""
    return mode if mode is None or isinstance(mode, str) else frames.to_json(mode).decode()


def kept_policy(mode: str | None, default: PermissionPolicy) -> PermissionPolicy:
    """The policy of a session that is taken up again."""
    if mode is None:
        return default
    if mode.startswith("{"):
        return parse_policy(msgspec.json.decode(mode))
    return NAMED_POLICIES.get(mode, default)


async def apply_choices(agent: Agent, record: SessionRecord, wishes: Wishes) -> dict[str, Any]:
    """Set model and mode as wished; says for each whether it was applied, and why not."""
    outcome: dict[str, Any] = {}
    mode = wishes.permission_mode if isinstance(wishes.permission_mode, str) else None
    wanted: list[tuple[str, setup.Category, str | None]] = [
        ("model", "model", wishes.model),
        ("agentMode", "mode", wishes.agent_mode),
        ("permissionMode", "mode", mode if mode not in NAMED_POLICIES else None),
    ]
    for name, category, value in wanted:
        if value is None:
            continue
        choice = setup.choose(record.setup, category, value)
        if choice is None:
            outcome[name] = {"applied": False, "reason": f"agent {agent.id!r} offers no {category} to choose"}
            continue
        method, params = choice
        try:
            result = await agent.request(
                method,
                {"sessionId": record.session_id, **params},
                session=record.session_id,
                timeout=_CONFIGURE_TIMEOUT,
            )
        except SandboxAgentError as error:
            outcome[name] = {"applied": False, "reason": str(error)}
            continue
        record.setup = setup.after_set(record.setup, method, params, result)
        outcome[name] = {"applied": True, "value": value}
    return outcome
