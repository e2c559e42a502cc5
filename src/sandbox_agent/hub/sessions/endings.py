"""How sessions begin and end, and who is told."""

from __future__ import annotations

import time
from typing import Any

from sandbox_agent.core import frames
from sandbox_agent.core.ids import SessionId
from sandbox_agent.errors import AgentExited, SandboxAgentError
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.sessions.inventory import Sessions
from sandbox_agent.store.base import SessionRecord

STARTED = "_sandboxagent/session/started"
ENDED = "_sandboxagent/session/ended"
ERROR = "_sandboxagent/error"
_FINISH_TIMEOUT = 10.0


def started(agent: Agent, record: SessionRecord) -> None:
    """Record that the session began. Nobody is attached yet who could be told."""
    params = {"sessionId": record.session_id, "agent": agent.id, "alias": record.alias, "cwd": record.cwd}
    agent.apply(agent.relay.publish(record.session_id, frames.notification(STARTED, params)))


def interrupted(agent: Agent, session: SessionId, error: AgentExited) -> None:
    """Tell who watches that the process died; the next prompt brings the session back."""
    params = {
        "sessionId": session,
        "code": error.kind,
        "message": f"{error.detail}; the session comes back with the next prompt",
        "details": error.data,
    }
    agent.apply(agent.relay.publish(session, frames.notification(ERROR, params)))


def crashed(error: AgentExited) -> dict[str, Any]:
    return {
        "reason": "error",
        "terminatedBy": "agent",
        "message": error.detail,
        "exitCode": error.data.get("exitCode"),
        "stderr": error.data.get("stderr"),
    }


def terminated(message: str) -> dict[str, Any]:
    return {"reason": "terminated", "terminatedBy": "client", "message": message, "exitCode": None, "stderr": None}


def end(agent: Agent, sessions: Sessions, record: SessionRecord, why: dict[str, Any]) -> None:
    """Mark the session ended and tell everybody attached."""
    record.ended = time.time()
    record.ended_reason = why["message"]
    sessions.save(record)
    line = frames.notification(ENDED, {"sessionId": record.session_id, **why})
    agent.apply(agent.relay.publish(record.session_id, line))


async def finish(agent: Agent, record: SessionRecord, verb: str) -> None:
    """Cancel what runs, then close or delete at the agent where it can; a dead agent has nothing to close."""
    session = record.session_id
    route = agent.relay.routes.get(session)
    if route is not None and route.is_live and agent.is_ready:
        cancel = frames.notification("session/cancel", {"sessionId": session})
        agent.apply(agent.relay.notify(frames.parse(cancel), cancel))
        can = agent.initialized is not None and agent.initialized.can(verb)
        if can:
            await agent.request(f"session/{verb}", {"sessionId": session}, session=session, timeout=_FINISH_TIMEOUT)
        route.is_live = False
    elif verb == "delete":
        await _delete_dormant(agent, record)


async def _delete_dormant(agent: Agent, record: SessionRecord) -> None:
    try:
        initialized = await agent.ready()
        if initialized.can("delete"):
            params = {"sessionId": record.session_id}
            await agent.request("session/delete", params, session=record.session_id, timeout=_FINISH_TIMEOUT)
    except SandboxAgentError:
        pass  # it is forgotten here either way
