"""How sessions end: closed at the agent, deleted, terminated, or lost with their process; and who is told."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core import frames
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.methods import RUNTIME_ERROR, SESSION_ENDED
from sandbox_agent.errors import AgentExited, SandboxAgentError, SessionEnded
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.store.base import SessionRecord

_FINISH_TIMEOUT = 10.0
_CANCEL_GRACE = 2.0
"""How long a cancelled turn may take to end by itself before it is answered for the agent."""


class End:
    def __init__(self, agents: Agents, inventory: Inventory) -> None:
        self._agents = agents
        self._inventory = inventory

    async def close(self, record: SessionRecord) -> None:
        """`session/close`: the agent lets it go; the next prompt wakes it again."""
        await self._finish(record, "close")

    async def delete(self, record: SessionRecord) -> None:
        """Nothing is known of it afterwards, here and at an agent that can forget it too."""
        agent = self._agents.get(record.agent)
        await self._finish(record, "delete")
        agent.forget(record.session_id, _gone(record, "has been deleted"))
        await self._inventory.delete(record)

    async def terminate(self, record: SessionRecord) -> None:
        """Idempotent: a session that has ended stays ended."""
        if record.ended is None:
            await self._finish(record, "close")
            self._over(self._agents.get(record.agent), record, _terminated())

    def process_lost(self, agent: Agent, error: AgentExited, sessions: list[SessionId]) -> None:
        """The process died: who watches is told; sessions that no other process can take up have ended."""
        for session in sessions:
            record = self._inventory.held(agent.key(session))
            if agent.can_revive:
                agent.publish(session, frames.notification(RUNTIME_ERROR, _interrupted(session, error)))
            elif record is not None:
                self._over(agent, record, _crashed(error))

    def _over(self, agent: Agent, record: SessionRecord, why: dict[str, Any]) -> None:
        self._inventory.end(record, why["message"])
        if record.session_id in agent.sessions:
            agent.end(record.session_id, _gone(record, f"has ended: {why['message']}"))
        agent.publish(record.session_id, frames.notification(SESSION_ENDED, {"sessionId": record.session_id, **why}))

    async def _finish(self, record: SessionRecord, verb: str) -> None:
        """Cancel what runs, then close or delete at the agent where it can; a dead agent has nothing to close."""
        agent = self._agents.get(record.agent)
        session = agent.sessions.get(record.session_id)
        if session is not None and session.is_live and agent.is_ready:
            agent.cancel(record.session_id)
            await agent.turn_over(record.session_id, patience=_CANCEL_GRACE)
            if agent.can(verb):
                params = {"sessionId": record.session_id}
                await agent.request(f"session/{verb}", params, session=record.session_id, timeout=_FINISH_TIMEOUT)
        elif verb == "delete":
            await self._delete_dormant(agent, record)
        if record.session_id in agent.sessions:
            agent.release(record.session_id, _gone(record, "was closed by a client"))

    async def _delete_dormant(self, agent: Agent, record: SessionRecord) -> None:
        try:
            initialized = await agent.ready()
            if initialized.can("delete"):
                params = {"sessionId": record.session_id}
                await agent.request("session/delete", params, session=record.session_id, timeout=_FINISH_TIMEOUT)
        except SandboxAgentError:
            pass  # it is forgotten here either way


def _gone(record: SessionRecord, what: str) -> SessionEnded:
    return SessionEnded(f"session {record.session_id!r} {what}", sessionId=record.session_id)


def _interrupted(session: SessionId, error: AgentExited) -> dict[str, Any]:
    return {
        "sessionId": session,
        "code": error.kind,
        "message": f"{error.detail}; the session comes back with the next prompt",
        "details": error.data,
    }


def _crashed(error: AgentExited) -> dict[str, Any]:
    return {
        "reason": "error",
        "terminatedBy": "agent",
        "message": error.detail,
        "exitCode": error.data.get("exitCode"),
        "stderr": error.data.get("stderr"),
    }


def _terminated() -> dict[str, Any]:
    message = "terminated by a client"
    return {"reason": "terminated", "terminatedBy": "client", "message": message, "exitCode": None, "stderr": None}
