"""The hub's state as others read it: sessions and agents, typed for the wire. Nothing here changes anything."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from sandbox_agent.core import config_options as setup
from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.json_values import iso_time
from sandbox_agent.core.lifecycle import State
from sandbox_agent.core.methods import ELICITATION, PERMISSION, QUESTION
from sandbox_agent.core.route import Ask, Route
from sandbox_agent.errors import InvalidParams, UnknownSession
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import SessionRecord


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: str
    agent: str
    alias: str | None
    title: str | None
    cwd: str | None
    mode: str | None
    model: str | None
    created_at: str
    updated_at: str
    ended: bool
    ended_at: str | None
    ended_reason: str | None
    event_count: int
    metadata: dict[str, Any]


class PendingRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A request of the agent that waits for somebody. `requestId` is the JSON-RPC id that clients answer."""

    request_id: int
    method: str
    params: dict[str, Any]


class AttachedConnection(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    connection_id: str
    client_info: dict[str, Any]
    created_at: str
    is_streaming: bool
    last_event_id: int


class SessionDetail(SessionSummary, frozen=True, kw_only=True, rename="camel"):
    last_activity_at: str
    is_live: bool
    """Known to the running agent process; otherwise the next prompt wakes it."""
    is_busy: bool
    queued_prompts: int
    pending_permissions: list[PendingRequest]
    pending_questions: list[PendingRequest]
    attached_connections: list[AttachedConnection]
    modes: list[dict[str, Any]]
    models: list[dict[str, Any]]
    config_options: list[dict[str, Any]]


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The agent's process. `stopped` is also one that has not been needed yet."""

    status: Literal["running", "stopped", "error"]
    uptime_ms: int | None
    restart_count: int
    last_error: str | None
    pid: int | None
    sessions: int


async def find_record(hub: Hub, name: str, agent: str | None = None) -> SessionRecord:
    """The session with this id or alias. Raises UnknownSession, and InvalidParams when several agents have it."""
    found = await hub.store.find_sessions(name)
    chosen = [record for record in found if agent is None or record.agent == agent]
    if not chosen:
        raise UnknownSession(name)
    if len(chosen) > 1:
        agents = ", ".join(sorted(record.agent for record in chosen))
        raise InvalidParams(f"session {name!r} exists at several agents ({agents}): name one with ?agent=")
    return chosen[0]


def summarize(record: SessionRecord) -> SessionSummary:
    return SessionSummary(**_summary(record))


async def describe_session(hub: Hub, record: SessionRecord) -> SessionDetail:
    agent = hub.agents.get(record.agent)
    route = agent.relay.routes.get(record.session_id) if agent is not None else None
    asks = list(route.asks.values()) if route is not None else []
    options = record.setup.get("configOptions")
    return SessionDetail(
        **_summary(record),
        last_activity_at=iso_time(await _last_activity(hub, record)),
        is_live=bool(route and route.is_live and agent is not None and agent.is_ready),
        is_busy=bool(route and route.turn is not None),
        queued_prompts=len(route.queue) if route is not None else 0,
        pending_permissions=[_pending(ask) for ask in asks if ask.method == PERMISSION],
        pending_questions=[_pending(ask) for ask in asks if ask.method in {QUESTION, ELICITATION}],
        attached_connections=_attached(hub, route),
        modes=setup.choices(record.setup, "mode"),
        models=setup.choices(record.setup, "model"),
        config_options=options if isinstance(options, list) else [],
    )


def server_status(hub: Hub, agent_id: AgentId) -> ServerStatus:
    agent = hub.agents.get(agent_id)
    if agent is None:
        return ServerStatus(status="stopped", uptime_ms=None, restart_count=0, last_error=None, pid=None, sessions=0)
    state, process = agent.lifecycle.state, agent.process
    is_running = state is State.RUNNING and process is not None
    return ServerStatus(
        status="running" if is_running else "error" if state is State.FAILED else "stopped",
        uptime_ms=int(process.uptime * 1000) if is_running and process is not None else None,
        restart_count=agent.lifecycle.restarts,
        last_error=agent.last_error,
        pid=process.pid if process is not None else None,
        sessions=sum(route.is_live for route in agent.relay.routes.values()),
    )


def capabilities(hub: Hub, agent_id: AgentId) -> dict[str, Any]:
    """What the agent said in its last `initialize`; nothing before its first start."""
    agent = hub.agents.get(agent_id)
    found = msgspec.json.decode(agent.handshake).get("agentCapabilities") if agent is not None else None
    return found if isinstance(found, dict) else {}


def running_agents(hub: Hub) -> list[Agent]:
    return [agent for agent in hub.agents.values() if agent.is_ready]


def stderr_lines(hub: Hub, agent_id: AgentId, tail: int) -> tuple[list[str], int]:
    """The last lines that the agent wrote to stderr, in this run or the one before, and how many there were."""
    agent = hub.agents.get(agent_id)
    summary = None
    if agent is not None:
        summary = agent.process.stderr.summary() if agent.process is not None else agent.last_stderr
    if summary is None:
        return [], 0
    kept = [*summary.head, *summary.tail]
    return kept[-tail:] if tail else [], summary.total_lines


def _summary(record: SessionRecord) -> dict[str, Any]:
    return {
        "session_id": record.session_id,
        "agent": record.agent,
        "alias": record.alias,
        "title": record.title,
        "cwd": record.cwd,
        "mode": record.mode,
        "model": record.model,
        "created_at": iso_time(record.created),
        "updated_at": iso_time(record.updated),
        "ended": record.ended is not None,
        "ended_at": None if record.ended is None else iso_time(record.ended),
        "ended_reason": record.ended_reason,
        "event_count": record.event_count,
        "metadata": record.metadata,
    }


async def _last_activity(hub: Hub, record: SessionRecord) -> float:
    stream = record.key.stream
    newest = await hub.store.read(stream, after=hub.store.last_sequence(stream) - 1, limit=1)
    return max(record.updated, newest[0].time if newest else 0.0)


def _pending(ask: Ask) -> PendingRequest:
    params = msgspec.json.decode(frames.params_of(ask.line))
    return PendingRequest(
        request_id=ask.id, method=ask.method, params=params if isinstance(params, dict) else {"params": params}
    )


def _attached(hub: Hub, route: Route | None) -> list[AttachedConnection]:
    found = [hub.connections[name] for name in route.attached if name in hub.connections] if route is not None else []
    return [
        AttachedConnection(
            connection_id=connection.id,
            client_info=connection.client_info,
            created_at=iso_time(connection.created),
            is_streaming=connection.stream.has_reader,
            last_event_id=connection.stream.last_id,
        )
        for connection in found
    ]
