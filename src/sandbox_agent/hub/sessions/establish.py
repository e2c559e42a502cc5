"""The only way a session is born: made anew, forked, or loaded from an agent that has it while we have not.

Name, policy, the call to the agent, the record, the announcement: always all of it, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from sandbox_agent.core import config_options, frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionId
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.mcp_servers import convert_mcp_servers
from sandbox_agent.core.methods import SESSION_STARTED
from sandbox_agent.core.permission_policy import NAMED_POLICIES, PermissionPolicy, parse_policy
from sandbox_agent.core.session import Client, Phase
from sandbox_agent.errors import AgentError, InvalidParams, SandboxAgentError
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.store.base import SessionRecord

_CONFIGURE_TIMEOUT = 30.0


class Wishes(msgspec.Struct, rename="camel"):
    """Our part of `_meta` in a request that makes a session."""

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


@dataclass(frozen=True, slots=True)
class NewSession:
    """All that is asked for. `params` are what the agent gets, checked already."""

    agent: AgentId
    method: str
    params: dict[str, Any]
    wishes: Wishes
    client: Client
    key: bytes
    """The JSON-RPC id of the request that asks for it, so that the client can take it back."""
    parent: SessionRecord | None = None
    """The session that it is a fork of, and how far that one's history had come is kept with the record."""
    loaded: SessionId | None = None
    """The agent's own name for a session that it has and we have not."""


@dataclass(frozen=True, slots=True)
class Established:
    record: SessionRecord
    result: dict[str, Any]
    """What the agent answered."""
    outcome: dict[str, Any]
    """For each choice that was wished for, whether it was applied."""


class Establish:
    def __init__(self, agents: Agents, inventory: Inventory, turn_ids: TurnIds) -> None:
        self._agents = agents
        self._inventory = inventory
        self._turn_ids = turn_ids

    async def __call__(self, new: NewSession) -> Established:
        """Raises Conflict for a name that is taken, and why the agent made no session."""
        agent = await self._agents.started(new.agent)
        async with self._inventory.reserved(new.wishes.requested_session_id):
            mode = _permission_mode(new)
            policy = kept_policy(mode, agent.default_policy)
            result = await self._ask(agent, new, policy)
            record = _record(agent, new, mode, result)
            if new.parent is not None:
                origin = {"sessionId": new.parent.session_id, "sequence": self._inventory.last_sequence(new.parent)}
                record.offered = {**record.offered, "forkedFrom": origin}
            self._inventory.add(record)
        if new.loaded is None:
            self._turn_ids.session_made(record.key)
        outcome = await _apply_choices(agent, record, new.wishes)
        if outcome:
            self._inventory.save(record)
        started = {"sessionId": record.session_id, "agent": agent.id, "alias": record.alias, "cwd": record.cwd}
        agent.publish(record.session_id, frames.notification(SESSION_STARTED, started))
        return Established(record, {**as_object(result), **config_options.from_answer(record.offered)}, outcome)

    async def _ask(self, agent: Agent, new: NewSession, policy: PermissionPolicy) -> Any:
        """The agent's answer. What a load replays is new to us: it is recorded, and told to the one who asked."""
        if new.loaded is not None:
            agent.open(new.loaded, Phase.LIVE, policy)
            agent.attach(new.client, new.loaded)
        try:
            return await agent.request(
                new.method,
                new.params,
                session=new.loaded if new.parent is None else new.parent.session_id,
                on_behalf=(new.client, new.key),
                policy=policy,
                timeout=None,
            )
        except SandboxAgentError as error:
            if new.loaded is not None:
                agent.forget(new.loaded, error)
            raise


def read_wishes(request: Request) -> Wishes:
    """Raises InvalidParams naming the field that is wrong."""
    try:
        wishes = msgspec.convert(request.meta(), Wishes)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"params._meta[{META!r}] of {request.method}: {error}") from None
    if wishes.requested_session_id is not None and not wishes.requested_session_id.strip():
        raise InvalidParams("requestedSessionId must not be empty")
    if wishes.permission_mode is not None and not isinstance(wishes.permission_mode, str):
        parse_policy(wishes.permission_mode)
    return wishes


def agent_params(
    request: Request, wishes: Wishes, environ: Mapping[str, str], kept: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What the agent gets: the client's params over those that are `kept`, checked, with MCP servers in ACP's form."""
    params = {**(kept or {}), **request.params()}
    servers = wishes.mcp if wishes.mcp is not None else params.get("mcpServers")
    if isinstance(servers, dict):
        servers = convert_mcp_servers(servers, environ)
    params["mcpServers"] = [] if servers is None else servers
    try:
        msgspec.convert(params, _AgentParams)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"params of {request.method}: {error}") from None
    return params


class _AgentParams(msgspec.Struct):
    """The shape that params must have to become part of a record."""

    cwd: str | None = None
    mcp_servers: list[dict[str, Any]] = msgspec.field(name="mcpServers", default_factory=list)
    directories: list[str] | None = msgspec.field(name="additionalDirectories", default=None)


def kept_policy(mode: str | None, default: PermissionPolicy) -> PermissionPolicy:
    """The policy that a record's permission mode means. A name that is none of ours may be a mode of the agent."""
    if mode is None:
        return default
    if mode.startswith("{"):
        return parse_policy(msgspec.json.decode(mode))
    return NAMED_POLICIES.get(mode, default)


def _permission_mode(new: NewSession) -> str | None:
    """As it is kept in the record, a name or the rules as JSON: what was wished for, else what the parent has."""
    mode = new.wishes.permission_mode
    if mode is None:
        return None if new.parent is None else new.parent.permission_mode
    return mode if isinstance(mode, str) else frames.to_json(mode).decode()


def _record(agent: Agent, new: NewSession, mode: str | None, result: Any) -> SessionRecord:
    """Raises AgentError when the agent's answer names no session."""
    session = new.loaded or as_object(result).get("sessionId")
    if not isinstance(session, str):
        raise AgentError(f"agent {agent.id!r} made a session and did not name it", answer=result)
    wishes = new.wishes
    named = {"title": wishes.title, "agentVersionRequested": wishes.agent_version_requested}
    extra = {name: value for name, value in named.items() if value is not None}
    return SessionRecord(
        agent=agent.id,
        session_id=SessionId(session),
        alias=wishes.requested_session_id,
        cwd=new.params.get("cwd"),
        title=wishes.title,
        mcp_servers=new.params["mcpServers"],
        skills=wishes.skills,
        permission_mode=mode,
        metadata={**wishes.metadata, **extra},
        offered=config_options.from_answer(result),
    )


async def _apply_choices(agent: Agent, record: SessionRecord, wishes: Wishes) -> dict[str, Any]:
    """Set model and mode as wished; says for each whether it was applied, and why not."""
    outcome: dict[str, Any] = {}
    mode = wishes.permission_mode if isinstance(wishes.permission_mode, str) else None
    wanted: list[tuple[str, config_options.Category, str | None]] = [
        ("model", "model", wishes.model),
        ("agentMode", "mode", wishes.agent_mode),
        ("permissionMode", "mode", mode if mode not in NAMED_POLICIES else None),
    ]
    for name, category, value in wanted:
        if value is None:
            continue
        choice = config_options.choose(record.offered, category, value)
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
        record.offered = config_options.after_set(record.offered, method, params, result)
        outcome[name] = {"applied": True, "value": value}
    return outcome
