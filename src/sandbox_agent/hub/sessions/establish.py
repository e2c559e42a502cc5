"""The only way a session is born: made anew, forked, loaded from an agent that has it while we have not, or announced
by an agent that has made it for a helper of its own.

Name, policy, the call to the agent, the record, the announcement: always all of it, in this order.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from sandbox_agent.core import config_options, frames
from sandbox_agent.core.effects import Announced
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.mcp_servers import check_mcp_servers, convert_mcp_servers
from sandbox_agent.core.methods import SESSION_STARTED
from sandbox_agent.core.permission_policy import NAMED_POLICIES, PermissionPolicy, parse_policy
from sandbox_agent.core.session import Client, Phase
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentError, Conflict, InvalidParams, SandboxAgentError, StoreError, UnknownSession
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.directories.directories import Directories, Equipment
from sandbox_agent.hub.quotas import Quotas
from sandbox_agent.hub.sessions.end import End
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.naming import Naming
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.sessions.views import info_update
from sandbox_agent.store.base import SessionRecord

_log = logging.getLogger(__name__)

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


class NewSession(msgspec.Struct, frozen=True):
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


class Established(msgspec.Struct, frozen=True):
    record: SessionRecord
    result: dict[str, Any]
    """What the agent answered."""
    outcome: dict[str, Any]
    """For each choice that was wished for, whether it was applied."""


class Establish:
    """`live` returns when a session's process holds it: some make a fork in another process than goes on with it."""

    def __init__(
        self,
        agents: Agents,
        inventory: Inventory,
        turn_ids: TurnIds,
        end: End,
        naming: Naming,
        live: Callable[[SessionKey], Awaitable[None]],
        directories: Directories,
        quotas: Quotas,
    ) -> None:
        self._agents = agents
        self._inventory = inventory
        self._turn_ids = turn_ids
        self._end = end
        self._naming = naming
        self._live = live
        self._directories = directories
        self._quotas = quotas

    async def __call__(self, new: NewSession) -> Established:
        """Raises Conflict for a name that is taken, TooMany, and why the agent made no session."""
        self._quotas.room_for_a_session()
        async with (
            self._agents.making(new.agent, new.parent.key if new.parent is not None else None) as maker,
            self._inventory.reserved(new.wishes.requested_session_id),
            self._naming.making(new.agent, is_apart=self._agents.are_apart(new.agent)),
        ):
            record, result, equipment = await self._make(maker, new)
        if new.loaded is None:
            self._turn_ids.session_made(record.key)
        await self._live(record.key)
        agent = self._agents.of(record.key)
        outcome = await _apply_choices(agent, record, new.wishes)
        if outcome:
            self._inventory.save(record)
        if agent.version is not Version.V1:
            record.spoken = [(1, int(agent.version))]
            self._inventory.save(record)
        started = {"sessionId": record.session_id, "agent": agent.id, "alias": record.alias, "cwd": record.cwd}
        agent.publish(record.session_id, frames.notification(SESSION_STARTED, started))
        if record.title is not None or record.metadata:
            agent.publish(record.session_id, info_update(record))
        answer = {**as_object(result), **config_options.from_answer(record.offered)}
        return Established(record, answer, {**outcome, **equipment.told})

    def announced(self, agent: Agent, effect: Announced) -> None:
        """The agent has made a session by itself, for a helper of its own: it is a session as others are."""
        parent = self._inventory.held(agent.key(effect.parent))
        record = SessionRecord(
            agent=agent.id,
            session_id=effect.session,
            native_id=effect.native if effect.native != effect.session else None,
            cwd=effect.cwd or (parent.cwd if parent is not None else None),
            title=effect.title,
            permission_mode=parent.permission_mode if parent is not None else None,
            metadata={"subagentOf": effect.parent},
            spoken=[] if agent.version is Version.V1 else [(1, int(agent.version))],
        )
        try:
            self._agents.adopted(agent, record.key)
            self._inventory.add(record)
        except StoreError as error:
            _log.warning("a subagent's session cannot be kept agent=%s problem=%s", agent.id, error)

    async def _make(self, agent: Agent, new: NewSession) -> tuple[SessionRecord, Any, Equipment]:
        await self._require_version(agent, new.wishes.agent_version_requested)
        mode = _permission_mode(new)
        policy = kept_policy(mode, agent.default_policy)
        own, can = new.params["mcpServers"], (await agent.ready()).capabilities
        equipment = await self._directories.equip(agent.id, new.params.get("cwd"), own, can, new.wishes.skills)
        result = await self._ask(agent, new, policy, equipment)
        record = _record(agent, new, mode, result)
        self._naming.made(agent.id, record.native)
        if record.native_id is not None:  # also if we refuse it below: the agent has it
            await self._end.given_away(record)
        await self._require_own_name(agent, record)
        _require_known_mode(agent, record, new.wishes)
        if new.parent is not None:
            parent = new.parent
            sequence = self._inventory.last_sequence(parent)
            origin = {"sessionId": parent.session_id, "created": parent.created, "sequence": sequence}
            record.offered = {**record.offered, "forkedFrom": origin}
        await self._agents.made(agent, record.key)
        self._inventory.add(record)
        self._end.made(record)
        return record, result, equipment

    async def _require_own_name(self, agent: Agent, record: SessionRecord) -> None:
        """An agent that names a session as a client has named another would get that one's prompts."""
        if record.alias != record.session_id and await self._inventory.is_alias(record.session_id):
            taken = AgentError(f"agent {agent.id!r} has named its session {record.session_id!r}, the alias of another")
            agent.forget(record.session_id, taken)
            raise taken

    async def _require_version(self, agent: Agent, wanted: str | None) -> None:
        """All sessions share one process: a wish for another version cannot be granted. Raises Conflict."""
        if wanted is None:
            return
        versions = await self._agents.versions(agent)
        if wanted not in versions:
            there = f"is version {' / '.join(sorted(versions))}" if versions else "does not tell its version"
            raise Conflict(
                f"agentVersionRequested: agent {agent.id!r} {there}, not {wanted!r}; install that version first "
                f"(agentVersion or agentProcessVersion of POST /v1/agents/{agent.id}/install)",
                agentVersions=sorted(versions),
            )

    async def _ask(self, agent: Agent, new: NewSession, policy: PermissionPolicy, equipment: Equipment) -> Any:
        """The agent's answer. What a load replays is new to us: it is recorded, and told to the one who asked."""
        if new.loaded is not None:
            if agent.holds(new.loaded) or await self._inventory.find(SessionKey(new.agent, new.loaded)) is not None:
                raise UnknownSession(new.loaded)  # by this name: it has one of ours, perhaps since a moment ago
            agent.open(new.loaded, Phase.LIVE, policy)
            agent.attach(new.client, new.loaded)
        try:
            return await agent.request(
                new.method,
                {**new.params, "mcpServers": [*new.params["mcpServers"], *equipment.servers]},
                session=new.loaded if new.parent is None else new.parent.session_id,
                on_behalf=(new.client, new.key),
                policy=policy,
                remembered=new.params,
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
    check_mcp_servers(params["mcpServers"])
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
    under_way = agent.sessions.get(SessionId(session))
    return SessionRecord(
        agent=agent.id,
        session_id=SessionId(session),
        native_id=under_way.native if under_way is not None and under_way.native != session else None,
        alias=wishes.requested_session_id,
        cwd=new.params.get("cwd"),
        title=wishes.title,
        mcp_servers=new.params["mcpServers"],
        additional_directories=new.params.get("additionalDirectories") or [],
        skills=wishes.skills,
        permission_mode=mode,
        metadata={**wishes.metadata, **extra},
        offered=config_options.from_answer(result),
    )


def _require_known_mode(agent: Agent, record: SessionRecord, wishes: Wishes) -> None:
    """A permission mode that is misspelt must not leave a session with another one. Raises InvalidParams."""
    mode = wishes.permission_mode
    if not isinstance(mode, str) or mode in NAMED_POLICIES:
        return
    offered = [str(choice["id"]) for choice in config_options.choices(record.offered, "mode")]
    if mode not in offered:
        available = ", ".join([*NAMED_POLICIES, *offered])
        unknown = InvalidParams(f"permissionMode {mode!r} is not known; available: {available}", field="permissionMode")
        agent.forget(record.session_id, unknown)
        raise unknown


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
        offered = config_options.only_options(record.offered) if agent.version is Version.V2 else record.offered
        choice = config_options.choose(offered, category, value)
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
        if agent.version is Version.V2:
            record.offered = config_options.with_current_mode(record.offered)
        outcome[name] = {"applied": True, "value": value}
    return outcome
