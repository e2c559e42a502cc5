"""How a session comes to be attached: made new, loaded with its conversation, or resumed without."""

from __future__ import annotations

from typing import Any

from sandbox_agent.client.connection import AgentConnection
from sandbox_agent.client.inbox import Inbox
from sandbox_agent.client.session import Session
from sandbox_agent.client.updates import read_update
from sandbox_agent.core.frames import META
from sandbox_agent.errors import InvalidParams, NotFound

_WISHES = {
    "session_id": "requestedSessionId",
    "title": "title",
    "model": "model",
    "mode": "agentMode",
    "permission_mode": "permissionMode",
    "skills": "skills",
    "metadata": "metadata",
    "agent_version": "agentVersionRequested",
}


async def create(
    connection: AgentConnection, cwd: str, mcp_servers: list[dict[str, Any]], wishes: dict[str, Any]
) -> Session:
    unknown = sorted(wishes.keys() - _WISHES.keys())
    if unknown:
        raise InvalidParams(f"create_session does not know {', '.join(unknown)}; it knows {', '.join(_WISHES)}")
    params: dict[str, Any] = {"cwd": cwd, "mcpServers": mcp_servers}
    if wishes:
        params["_meta"] = {META: {_WISHES[name]: value for name, value in wishes.items()}}
    answer = await connection.call("session/new", params)
    return Session(connection, connection.inbox(answer["sessionId"], cwd), answer)


async def load(connection: AgentConnection, session_id: str, cwd: str) -> Session:
    session_id, cwd = await _named(connection, session_id, cwd)
    inbox = connection.inbox(session_id, cwd)
    inbox.replay = []
    try:
        answer = await connection.call("session/load", {"sessionId": session_id, "cwd": cwd, "mcpServers": []})
        replayed = inbox.replay
    except BaseException:
        connection.inboxes.pop(session_id, None)
        raise
    finally:
        inbox.replay = None
    session = Session(connection, inbox, answer)
    session.replay = [read_update(envelope) for envelope in replayed]
    return session


async def resume(connection: AgentConnection, session_id: str, cwd: str) -> Session:
    session_id, cwd = await _named(connection, session_id, cwd)
    is_new = session_id not in connection.inboxes
    inbox = connection.inbox(session_id, cwd)
    try:
        answer = await connection.call("session/resume", {"sessionId": session_id, "cwd": cwd, "mcpServers": []})
    except BaseException:
        if is_new:
            connection.inboxes.pop(session_id, None)
        raise
    return Session(connection, inbox, answer)


async def refer(connection: AgentConnection, session_id: str) -> Session:
    """A session that is not attached: no updates come."""
    known = await connection.call("_sandboxagent/session/get", {"sessionId": session_id})
    return Session(connection, Inbox(known["sessionId"], known.get("cwd") or "/", connection), known)


async def _named(connection: AgentConnection, name: str, cwd: str) -> tuple[str, str]:
    """The id that the session's updates carry, and its cwd; `name` may be an alias, or known to the agent only."""
    try:
        known = await connection.call("_sandboxagent/session/get", {"sessionId": name})
    except NotFound:
        return name, cwd
    return str(known["sessionId"]), str(known.get("cwd") or cwd)
