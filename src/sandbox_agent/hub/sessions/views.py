"""Sessions as others read them, typed for the wire. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from sandbox_agent.core import config_options, frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import iso_time
from sandbox_agent.core.mcp_servers import describe_mcp_servers
from sandbox_agent.core.methods import ELICITATION, PERMISSION, QUESTION, UPDATE
from sandbox_agent.core.session import Ask, Session
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.store.base import SessionRecord


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: str
    agent: str
    alias: str | None
    title: str | None
    first_prompt: str | None
    """The beginning of the first prompt: a name for a session that has no title."""
    last_error: str | None
    """Why the newest turn failed; null if it did not."""
    cwd: str | None
    mode: str | None
    model: str | None
    created_at: str
    updated_at: str
    ended: bool
    ended_at: str | None
    ended_reason: str | None
    event_count: int
    native_session_id: str
    """What the agent calls the session."""
    additional_directories: list[str]
    permission_mode: str | dict[str, Any] | None
    """A policy by name, the rules of one, or a mode of the agent."""
    mcp: dict[str, Any]
    """The MCP servers by name, without the values of their variables and headers."""
    skills: Any
    metadata: dict[str, Any]
    node: str | UnsetType = UNSET
    """The node that owns it, where several servers share a database."""


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


def summarize(record: SessionRecord) -> SessionSummary:
    return SessionSummary(**_summary(record))


def describe(
    record: SessionRecord,
    session: Session | None,
    attached: Sequence[Connection],
    *,
    is_live: bool,
    last_activity: float,
) -> SessionDetail:
    """`session` is what is under way in it, if anything is."""
    asks = list(session.asks.values()) if session is not None else []
    options = record.offered.get("configOptions")
    return SessionDetail(
        **_summary(record),
        last_activity_at=iso_time(last_activity),
        is_live=is_live,
        is_busy=session is not None and session.is_busy,
        queued_prompts=len(session.queue) if session is not None else 0,
        pending_permissions=[_pending(ask) for ask in asks if ask.method == PERMISSION],
        pending_questions=[_pending(ask) for ask in asks if ask.method in {QUESTION, ELICITATION}],
        attached_connections=[_attached(connection) for connection in attached],
        modes=config_options.choices(record.offered, "mode"),
        models=config_options.choices(record.offered, "model"),
        config_options=options if isinstance(options, list) else [],
    )


def session_info(record: SessionRecord) -> dict[str, Any]:
    """A session as ACP's SessionInfo, with what ACP lacks under our key: the same as over HTTP."""
    said: dict[str, Any] = msgspec.to_builtins(summarize(record))
    ours = {name: value for name, value in said.items() if name not in _ACP_NAMES and value is not None}
    directories = said["additionalDirectories"]
    return {
        "sessionId": record.session_id,
        "cwd": record.cwd or "/",
        **({"additionalDirectories": directories} if directories else {}),
        "title": record.title,
        "updatedAt": said["updatedAt"],
        "_meta": {META: ours},
    }


_ACP_NAMES = frozenset({"sessionId", "cwd", "additionalDirectories", "title", "updatedAt"})


def info_update(record: SessionRecord) -> bytes:
    """ACP's `session_info_update` with what a client may have changed."""
    update = {
        "sessionUpdate": "session_info_update",
        "title": record.title,
        "updatedAt": iso_time(record.updated),
        "_meta": {META: {"metadata": record.metadata}},
    }
    return frames.notification(UPDATE, {"sessionId": record.session_id, "update": update})


def _summary(record: SessionRecord) -> dict[str, Any]:
    return {
        "session_id": record.session_id,
        "agent": record.agent,
        "alias": record.alias,
        "title": record.title,
        "first_prompt": record.first_prompt,
        "last_error": record.last_error,
        "cwd": record.cwd,
        "mode": record.mode,
        "model": record.model,
        "created_at": iso_time(record.created),
        "updated_at": iso_time(record.updated),
        "ended": record.ended is not None,
        "ended_at": None if record.ended is None else iso_time(record.ended),
        "ended_reason": record.ended_reason,
        "event_count": record.event_count,
        "native_session_id": record.native,
        "additional_directories": record.additional_directories,
        "permission_mode": _permission_mode(record.permission_mode),
        "mcp": describe_mcp_servers(record.mcp_servers),
        "skills": record.skills,
        "metadata": record.metadata,
        "node": UNSET if record.owner is None else record.owner,
    }


def _permission_mode(kept: str | None) -> Any:
    """Rules are kept as JSON text, names as they are."""
    return msgspec.json.decode(kept) if kept is not None and kept.startswith("{") else kept


def _pending(ask: Ask) -> PendingRequest:
    params = msgspec.json.decode(frames.params_of(ask.line))
    return PendingRequest(
        request_id=ask.id, method=ask.method, params=params if isinstance(params, dict) else {"params": params}
    )


def _attached(connection: Connection) -> AttachedConnection:
    return AttachedConnection(
        connection_id=connection.id,
        client_info=connection.client_info,
        created_at=iso_time(connection.created),
        is_streaming=connection.stream.has_reader,
        last_event_id=connection.stream.last_id,
    )
