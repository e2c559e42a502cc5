"""How sessions end: closed at the agent, deleted, terminated, or lost with their process; and who is told."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionId, SessionKey
from sandbox_agent.core.methods import RUNTIME_ERROR, SESSION_ENDED
from sandbox_agent.errors import AgentExited, SandboxAgentError, SessionEnded, StoreError
from sandbox_agent.history.universal.event_data import ended_data
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.store.base import SessionRecord

_FINISH_TIMEOUT = 10.0
_CANCEL_GRACE = 2.0
"""How long a cancelled turn may take to end by itself before it is answered for the agent."""


class End:
    def __init__(self, agents: Agents, inventory: Inventory, clients: Clients, turn_ids: TurnIds) -> None:
        self._agents = agents
        self._clients = clients
        self._inventory = inventory
        self._turn_ids = turn_ids
        self._given: dict[SessionKey, SessionId] = {}
        """Names of sessions that are being made, and to whom another process has given them already."""
        self._newest: dict[SessionKey, SessionId] = {}
        """Who has the name of a first session of which nothing is known."""

    async def close(self, record: SessionRecord) -> None:
        """`session/close`: the agent lets it go; the next prompt wakes it again."""
        await self._finish(record, "close")
        await self._agents.let_go(record.key)

    async def delete(self, record: SessionRecord) -> None:
        """Nothing is known of it afterwards, here and at an agent that can forget it too."""
        agent = self._agents.of(record.key)
        await self._finish(record, "delete")
        if self._is_another(record):
            return
        agent.forget(record.session_id, _gone(record, "has been deleted"))
        for stream in [stream for connection in self._clients.values() for stream in connection.streams]:
            stream.forget(record.key.stream)
        await self._take_name_away(record)
        await self._inventory.delete(record)
        self._turn_ids.session_deleted(record.key)
        await self._agents.let_go(record.key)

    async def terminate(self, record: SessionRecord) -> None:
        """Idempotent: a session that has ended stays ended."""
        if record.ended is None:
            await self._finish(record, "close")
            if self._inventory.held(record.key) is not record:
                return  # deleted meanwhile: there is nothing left to end
            self._over(self._agents.of(record.key), record, _terminated())
            await self._agents.let_go(record.key)

    async def given_away(self, newer: SessionRecord) -> None:
        """The agent has named its new session as an older one: that cannot be taken up any more, by no process.

        One that a process of its own still holds goes on until that process ends; waking it is refused then. Raises
        StoreError when nobody can say which they are; then none of that name is taken up while this server runs."""
        try:
            await self._give_away(newer)
        except StoreError:
            self._inventory.bar_name(newer.agent, newer.native)
            raise

    async def _give_away(self, newer: SessionRecord) -> None:
        key = SessionKey(newer.agent, SessionId(newer.native))
        first = await self._inventory.find(key)
        if first is None:
            if any(key.session in agent.sessions for agent in self._agents.all_of(key.agent)):
                self._given[key] = newer.session_id  # its process has named it, and we have not come to write it down
            await self._give_away_again(key, newer)
            return
        before = first.name_given_to
        first.name_given_to = newer.session_id
        latest = first if before is None else await self._inventory.find(SessionKey(newer.agent, before))
        if latest is not None:
            self._take_name(latest, newer)  # of its own: the first one may be deleted
        if self._inventory.held(first.key) is first:
            self._inventory.save(first)
        else:  # it was deleted while we looked
            newer.name_given_to = first.session_id

    async def _give_away_again(self, first: SessionKey, newer: SessionRecord) -> None:
        """Of the first session of that name nothing is known, as after a kill while it was made: another has it."""
        before = self._newest.get(first)
        if before is not None:
            keys = [SessionKey(first.agent, before)]
        else:
            keys = await self._inventory.called(first.agent, newer.native)
        self._newest[first] = newer.session_id
        for key in keys:
            older = await self._inventory.find(key)
            if older is None:
                self._given[key] = newer.session_id  # it is being made
            elif older.name_given_to is None:
                self._take_name(older, newer)

    def _take_name(self, older: SessionRecord, newer: SessionRecord) -> None:
        older.name_given_to = newer.session_id
        self._inventory.save(older)
        if older.ended is None and not self._is_live(older):
            self._over(self._agents.of(older.key), older, _given_away(newer))

    def made(self, record: SessionRecord) -> None:
        """To be called when a new session is known: another process may have given its name again meanwhile."""
        self._newest.pop(record.key, None)
        given_to = self._given.pop(record.key, None)
        if given_to is not None:
            record.name_given_to = given_to
            self._inventory.save(record)

    async def _take_name_away(self, deleted: SessionRecord) -> None:
        """The agent was told to forget the name, and may give it to a session that gets this id: the one that it called
        so as well must not be taken for that."""
        newest = None
        while deleted.native_id is None and (given_to := deleted.name_given_to) is not None:
            newest = await self._inventory.find(SessionKey(deleted.agent, given_to))
            if deleted.name_given_to == given_to:
                break
        if newest is not None and newest.name_given_to is None:
            newest.name_given_to = deleted.session_id
            self._inventory.save(newest)
        elif newest is None and deleted.native_id is None and deleted.name_given_to is not None:
            self._given[SessionKey(deleted.agent, deleted.name_given_to)] = deleted.session_id  # it is being made

    def name_lost(self, agent: Agent, session: SessionId) -> None:
        """The agent has named a new session so while it was asked to resume this one: nobody knows what it resumed."""
        record = self._inventory.held(agent.key(session))
        if record is not None and record.ended is None:
            self._over(agent, record, _contested(record))

    def _is_live(self, record: SessionRecord) -> bool:
        session = self._agents.of(record.key).sessions.get(record.session_id)
        return session is not None and session.is_live

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
        agent.publish(record.session_id, frames.notification(SESSION_ENDED, _told(record, why)))

    async def _finish(self, record: SessionRecord, verb: str) -> None:
        """Cancel what runs, then close or delete at the agent where it can; a dead agent has nothing to close."""
        agent = self._agents.of(record.key)
        session = agent.sessions.get(record.session_id)
        if session is not None and session.is_live and agent.is_ready:
            await self._have_let_go(agent, record.session_id, verb)
        elif verb == "delete":
            await self._delete_dormant(agent, record)
        if record.session_id in agent.sessions and not self._is_another(record):
            agent.release(record.session_id, _gone(record, "was closed by a client"))

    def _is_another(self, record: SessionRecord) -> bool:
        """Whether it was deleted meanwhile, and the agent has given its name to a session that has the id now."""
        held = self._inventory.held(record.key)
        return held is not None and held is not record

    async def _have_let_go(self, agent: Agent, session: SessionId, verb: str) -> None:
        agent.closing(session)
        try:
            agent.cancel(session)
            await agent.turn_over(session, patience=_CANCEL_GRACE)
            if agent.can(verb):
                params = {"sessionId": session}
                await agent.request(f"session/{verb}", params, session=session, timeout=_FINISH_TIMEOUT)
        except BaseException:
            agent.kept(session)
            raise

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


def _told(record: SessionRecord, why: dict[str, Any]) -> dict[str, Any]:
    """What is told of the end: in our words, and in those of the earlier API."""
    earlier = ended_data(why)
    end = {
        "reason": earlier["reason"],
        "terminatedBy": earlier["terminated_by"],
        "message": why["message"],
        "exitCode": why["exitCode"],
    }
    return {
        "sessionId": record.session_id,
        **why,
        "terminated_by": earlier["terminated_by"],
        "exit_code": why["exitCode"],
        "_meta": {META: {"agent": record.agent, "nativeSessionId": record.native, "sessionEnd": end}},
    }


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


def _given_away(newer: SessionRecord) -> dict[str, Any]:
    message = f"the agent has given its name {newer.native!r} to a newer session, {newer.session_id!r}"
    return {"reason": "error", "terminatedBy": "agent", "message": message, "exitCode": None, "stderr": None}


def _contested(record: SessionRecord) -> dict[str, Any]:
    message = f"the agent has given its name {record.native!r} to another session while it was asked to resume this one"
    return {"reason": "error", "terminatedBy": "agent", "message": message, "exitCode": None, "stderr": None}


def _terminated() -> dict[str, Any]:
    message = "terminated by a client"
    return {"reason": "terminated", "terminatedBy": "client", "message": message, "exitCode": None, "stderr": None}
