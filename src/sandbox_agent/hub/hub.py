"""The middle of everything: doors hand requests in, agents and the store are behind it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId, ConnectionId
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.methods import CANCEL_REQUEST, ClientCall, client_call, goes_to_agent
from sandbox_agent.errors import SandboxAgentError, ShuttingDown
from sandbox_agent.files import FileService
from sandbox_agent.hub.agents.agent import Agent, AgentOptions
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.agents.installs import AgentCatalog, Installs
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.extensions.agents import AgentExtensions
from sandbox_agent.hub.extensions.extensions import Extensions
from sandbox_agent.hub.extensions.feed import FeedExtensions
from sandbox_agent.hub.extensions.files import FileExtensions
from sandbox_agent.hub.extensions.sessions import SessionExtensions
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.items import Items
from sandbox_agent.hub.sessions.requests import SessionRequests
from sandbox_agent.hub.sessions.sessions import Sessions
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.hub.watch import Watch
from sandbox_agent.store.base import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubOptions:
    agent: AgentOptions
    window_bytes: int
    connections: int
    refuses_turns_when_degraded: bool
    """Prompts with a turnId, while the store could forget them if we died."""
    room_timeout: float
    """Seconds that a request waits for an agent that does not read its input."""
    unattended: float | None
    """Seconds that a question waits while nobody is attached who could answer it; None waits for ever."""
    feed_bytes: int
    """How much of the feed is kept for those who come back."""


class Hub:
    """Puts the rooms together, and hands each request of a client to the one that answers it."""

    def __init__(
        self,
        store: Store,
        catalog: AgentCatalog,
        *,
        environ: Mapping[str, str],
        options: HubOptions,
        files: FileService,
    ) -> None:
        self.store = store
        self.tasks = Tasks()
        self.closing = asyncio.Event()
        self.feed = Feed(kept_bytes=options.feed_bytes)
        self.clients = Clients(store, limit=options.connections, window_bytes=options.window_bytes)
        self.installs = Installs(catalog)
        self.agents = Agents(self.installs, self._make_agent)
        turn_ids, items = TurnIds(store, needs_memory=options.refuses_turns_when_degraded), Items(store)
        inventory = Inventory(store, self.feed)
        self.sessions = Sessions(store, inventory, self.agents, self.clients, turn_ids)
        self._environ = environ
        self._options = options
        self._ask_ids = count(1)
        self._host = Host(environ, files)
        self._watch = Watch(
            self.agents,
            self.clients,
            inventory,
            self.sessions,
            turn_ids,
            items,
            self._host,
            self.feed,
            self.tasks,
            unattended=options.unattended,
        )
        self.installs.watch(self._watch.installing)
        self._requests = SessionRequests(self.agents, self.sessions, turn_ids, items, self.tasks, environ)
        self._extensions = Extensions(
            {
                **SessionExtensions(self.sessions).methods,
                **AgentExtensions(catalog, self.installs, self.agents).methods,
                **FileExtensions(files, self.sessions).methods,
                **FeedExtensions(self.feed, self.clients).methods,
            }
        )
        self._at_once: dict[ClientCall, Callable[[Request], None]] = {
            ClientCall.PROMPT: self._requests.prompt,
            ClientCall.SESSION: self._requests.pass_on,
            ClientCall.AGENT: self._to_agent,
        }
        self._in_a_task = self._calls_in_a_task()

    async def open_connection(
        self,
        agent_id: AgentId,
        params: dict[str, Any],
        *,
        kind: type[Connection] = Connection,
        connection_id: ConnectionId | None = None,
    ) -> tuple[Connection, dict[str, Any]]:
        """Attach a new client to an agent, starting it if need be; gives the `initialize` result.

        Raises UnknownAgent, AgentNotInstalled, InstallError, AgentStartFailed."""
        self._refuse_when_closing()
        self.clients.require_place()
        await self.agents.started(agent_id)
        connection = self.clients.add(agent_id, params, self.dispatch, kind=kind, connection_id=connection_id)
        return connection, self._describe_handshake(connection)

    async def close_connection(self, connection_id: str) -> None:
        """Close the connection only: its sessions and turns go on. Closing twice is no error."""
        connection = self.clients.get(ConnectionId(connection_id))
        if connection is None:
            return
        for agent in self.agents:
            agent.connection_closed(connection.id)
        await self.clients.close(connection)

    def send(self, connection: Connection, frame: Frame, raw: bytes) -> None:
        """Take a client's notification, or its answer to a request of an agent."""
        connection.last_used = time.monotonic()
        if frame.is_answer:
            if not any(agent.answer(connection.id, frame, raw) for agent in self.agents):
                _log.debug("answer to a request that is not open connection=%s id=%r", connection.id, frame.key)
        elif frame.method == CANCEL_REQUEST:
            for agent in self.agents:
                agent.cancel_request(connection.id, raw)
        elif frame.session is not None:
            self._requests.notify(connection, frame, raw, frame.session)
        else:
            self.agents.get(connection.agent).notify(frame, raw)

    async def room(self, connection: Connection, frame: Frame) -> None:
        """Back pressure: return when the connection's agent can take this message. Raises AgentTimeout.

        What does not go to the agent does not wait for it, nor do cancels and answers, which are small."""
        agent = self.agents.find(connection.agent)
        if agent is None or agent.has_room or (frame.is_request and not goes_to_agent(frame.method or "")):
            return
        if not frame.is_request and agent.has_room_for_control:
            return
        await agent.room(timeout=self._options.room_timeout)

    def has_room(self, connection: Connection) -> bool:
        """Whether the connection's agent can take more at once."""
        agent = self.agents.find(connection.agent)
        return agent is None or agent.has_room

    async def close(self) -> None:
        """Answer everybody, end streams, stop all agents at once; bounded by the agents' grace."""
        self.closing.set()
        self.tasks.cancel()
        self.feed.close()
        stopping = [asyncio.ensure_future(agent.stop()) for agent in self.agents]
        await asyncio.sleep(0)  # every agent has answered its waiters now; the answers come before the end
        for connection in self.clients.values():
            connection.close("server is shutting down", ShuttingDown("the server is shutting down"))
        await asyncio.gather(*stopping, self.installs.close(), self._host.close())

    def dispatch(self, connection: Connection, ticket: int, frame: Frame, raw: bytes) -> None:
        """Take a client's request. Its answer, also that it failed, comes through `connection.reply`."""
        request = Request(connection, ticket, frame, raw)
        connection.last_used = time.monotonic()
        try:
            self._refuse_when_closing()
            call = client_call(request.method, has_session=frame.session is not None)
            if (act := self._at_once.get(call)) is not None:
                act(request)
            else:
                self.tasks.answer(request, self._in_a_task[call](request))
        except SandboxAgentError as error:
            request.fail(error)

    def _calls_in_a_task(self) -> dict[ClientCall, Callable[[Request], Coroutine[Any, Any, None]]]:
        return {
            ClientCall.INITIALIZE: self._handshake_again,
            ClientCall.LIST: self._extensions.list_sessions,
            ClientCall.CREATE: self._requests.create,
            ClientCall.LOAD: self._requests.load,
            ClientCall.RESUME: self._requests.resume,
            ClientCall.FORK: self._requests.fork,
            ClientCall.CONFIGURE: self._requests.configure,
            ClientCall.FINISH: self._requests.finish,
            ClientCall.SERVER: self._extensions.answer,
        }

    def _make_agent(self, agent_id: AgentId) -> Agent:
        return Agent(
            agent_id,
            store=self.store,
            connections=self.clients.by_id,
            watcher=self._watch,
            on_exit=self._watch.exited,
            on_change=self._watch.changed,
            find_spec=self.installs.ensure,
            environ=self._environ,
            ask_ids=self._ask_ids,
            options=self._options.agent,
        )

    def _describe_handshake(self, connection: Connection) -> dict[str, Any]:
        """The agent's own `initialize` result, with our part added."""
        result: dict[str, Any] = msgspec.json.decode(self.agents.get(connection.agent).handshake)
        capabilities = result.setdefault("agentCapabilities", {})
        ours = {"connectionId": connection.id, "agent": connection.agent, "extensions": self._extensions.names}
        capabilities["_meta"] = {**as_object(capabilities.get("_meta")), META: {"extensions": self._extensions.names}}
        result["_meta"] = {**as_object(result.get("_meta")), META: ours}
        return result

    async def _handshake_again(self, request: Request) -> None:
        await self.agents.get(request.connection.agent).ready()
        request.answer(self._describe_handshake(request.connection))

    def _to_agent(self, request: Request) -> None:
        agent = self.agents.get(request.connection.agent)
        if agent.is_ready:
            agent.call(request)
        else:
            self.tasks.answer(request, self._to_agent_later(agent, request))

    async def _to_agent_later(self, agent: Agent, request: Request) -> None:
        await agent.ready()
        agent.call(request)

    def _refuse_when_closing(self) -> None:
        if self.closing.is_set():
            raise ShuttingDown("the server is shutting down")
