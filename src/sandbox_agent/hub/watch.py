"""What is done about effects that reach beyond one agent's pipe and its clients' streams."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from sandbox_agent.agents import Progress
from sandbox_agent.core import effects as fx
from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.json_values import as_object, as_text, read_json
from sandbox_agent.core.methods import RUNTIME_ERROR, TERMINAL_OUTPUT, UPDATE
from sandbox_agent.core.versions import UpdateTranslator, Version
from sandbox_agent.errors import AgentExited, SandboxAgentError
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.agents.status import server_status
from sandbox_agent.hub.agents.terminals import Tell
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.processes.process import Session
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.items import Items
from sandbox_agent.hub.sessions.sessions import Sessions
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.store.base import Store

if TYPE_CHECKING:
    from sandbox_agent.hub.cluster.cluster import Cluster

_FEED_TYPES = {
    "turn_queued": "turn.queued",
    "turn_started": "turn.started",
    "turn_ended": "turn.ended",
    "asked": "question.asked",
    "settled": "question.settled",
}


_UNREAD = 60.0
"""Seconds that an answer with a file in it waits for an agent that does not read."""


class Watch:
    """Stands behind every agent's delivery."""

    def __init__(
        self,
        agents: Agents,
        clients: Clients,
        inventory: Inventory,
        sessions: Sessions,
        turn_ids: TurnIds,
        items: Items,
        host: Host,
        feed: Feed,
        tasks: Tasks,
        store: Store,
        *,
        unattended: float | None,
    ) -> None:
        self._agents = agents
        self._clients = clients
        self._inventory = inventory
        self._sessions = sessions
        self._turn_ids = turn_ids
        self._items = items
        self._host = host
        self._feed = feed
        self._tasks = tasks
        self._store = store
        self._unattended = unattended
        self.growth = sessions.growth
        self.cluster: Cluster | None = None

    def observed(self, agent: Agent, effect: fx.Observed) -> None:
        key = agent.key(effect.session)
        if agent.version is Version.V1:
            self._inventory.observe(key, effect.kind, effect.line)
            return
        translator = UpdateTranslator(key.session, from_=agent.version, to=Version.V1)
        for params in translator.update(read_json(frames.params_of(effect.line))):
            observed = as_text(as_object(as_object(params).get("update")).get("sessionUpdate"))
            self._inventory.observe(key, observed, frames.notification(UPDATE, params))

    def prompt_answered(self, agent: Agent, effect: fx.Reply) -> None:
        self._turn_ids.answered(effect.connection, effect.ticket, effect.line, has_run=effect.has_run)

    def taken_up(self, agent: Agent, effect: fx.TakenUp) -> None:
        self._turn_ids.begun(agent.key(effect.session), effect.turn_id, effect.message_id)

    def announced(self, agent: Agent, effect: fx.Announced) -> None:
        self._sessions.establish.announced(agent, effect)

    def _turn_over(self, agent: Agent, ended: fx.Notice) -> None:
        key = agent.key(ended.session)
        if "turnId" in ended.params:
            params = ended.params
            self._turn_ids.ended(key, params["turnId"], params.get("result", UNSET), params.get("error", UNSET))
        agent.lifecycle.worked()
        record = self._inventory.held(key)
        if record is not None:
            error = ended.params.get("error")
            record.last_error = None if error is None else frames.error_message(bytes(error))
            self._inventory.save(record)
        if self._clients.has_item_listeners:
            listeners = lambda: self._clients.item_listeners(agent.sessions.get(key.session))  # noqa: E731
            self._tasks.start(self._items.tell(key, listeners))
        else:
            session = agent.sessions.get(key.session)
            self._items.skip(key, is_last=session is None or session.is_idle)

    def noticed(self, agent: Agent, effect: fx.Notice) -> None:
        if effect.name == "turn_ended" and effect.params["hasRun"]:
            self._turn_over(agent, effect)
        self._feed.tell(
            _FEED_TYPES[effect.name], lambda: {"agent": agent.id, "sessionId": effect.session, **effect.params}
        )

    def session_lost(self, key: SessionKey, error: SandboxAgentError) -> None:
        """Another server has the session: its turn stops here, who waits is answered, who is attached is told."""
        self._inventory.lose(key)
        self._items.forget(key)
        agent = self._agents.found(key)
        session = agent.sessions.get(key.session) if agent is not None else None
        if agent is not None and session is not None:
            line = frames.notification(
                RUNTIME_ERROR, {"sessionId": key.session, "code": error.kind, "message": error.detail}
            )
            attached = [self._clients[name] for name in session.attached if name in self._clients]
            for connection in attached:
                if self.cluster is None or connection.is_guest:  # else it follows the session to where it goes
                    connection.deliver_own(key.session, line)
            agent.cancel(key.session)
            agent.release(key.session, error)
            if self.cluster is not None:
                self.cluster.session_lost(key, attached)
                for connection in attached:
                    agent.detach(connection.id, key.session)
        self._store.once_safe(lambda: self._turn_ids.session_deleted(key))  # after those who wait have been answered

    def replayed(self, key: SessionKey) -> None:
        self._sessions.waking.replayed(key)

    def wake(self, key: SessionKey) -> None:
        self._tasks.start(self._sessions.waking.wake(key))

    def name_lost(self, agent: Agent, session: SessionId) -> None:
        self._sessions.end.name_lost(agent, session)

    def unattended(self, agent: Agent, ask: int) -> None:
        if self._unattended is not None:
            asyncio.get_running_loop().call_later(self._unattended, agent.expire, ask)

    def serve(self, agent: Agent, effect: fx.Serve) -> None:
        self._tasks.start(self._serve(agent, effect))

    def exited(self, agent: Agent, error: AgentExited, sessions: list[SessionId]) -> None:
        for connection in agent.audience:
            connection.agent_exited(error)
        self._sessions.end.process_lost(agent, error, sessions)

    def changed(self, agent: Agent) -> None:
        self._feed.tell("agent.changed", lambda: self._status(agent.id))

    def _status(self, agent: AgentId) -> dict[str, Any]:
        processes, tally = self._agents.all_of(agent), self._agents.tally(agent)
        return {"agent": agent, "serverStatus": server_status(processes, tally)}

    def installing(self, agent: AgentId, progress: Progress) -> None:
        self._feed.tell("install.progress", lambda: {"agent": agent, "progress": progress})

    async def _serve(self, agent: Agent, effect: fx.Serve) -> None:
        record = self._inventory.held(SessionKey(agent.id, effect.session)) if effect.session is not None else None
        tell = partial(self._tell_terminal, agent, effect.session) if effect.session is not None else None
        session = Session(effect.session, agent.id, record.cwd if record else None) if effect.session else None
        if not effect.method.startswith("fs/"):
            agent.served(effect.ask, await self._member(effect, session, tell))
            return
        async with agent.large_answers:  # what an agent asks for and does not read must not pile up here
            try:
                await agent.room(timeout=_UNREAD)
            except SandboxAgentError as error:
                agent.served(effect.ask, _failed(error))
            else:
                agent.served(effect.ask, await self._member(effect, session, tell))

    async def _member(self, effect: fx.Serve, session: Session | None, tell: Tell | None) -> bytes:
        try:
            served = await self._host.serve(effect.method, effect.params, session, tell)
            return b'"result":%b' % frames.to_json(served)
        except SandboxAgentError as error:
            return _failed(error)

    def _tell_terminal(self, agent: Agent, session: SessionId, news: dict[str, Any]) -> None:
        agent.publish(session, frames.notification(TERMINAL_OUTPUT, {"sessionId": session, **news}))


def _failed(error: SandboxAgentError) -> bytes:
    return b'"error":%b' % frames.to_json({"code": error.code, "message": error.detail})
