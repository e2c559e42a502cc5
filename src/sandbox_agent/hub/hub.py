"""The middle of everything: doors hand requests in, agents and the store are behind it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from sandbox_agent.core import versions
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId, ConnectionId, SessionName
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.methods import CANCEL_REQUEST, PROMPT, ClientCall, client_call, goes_to_agent
from sandbox_agent.core.users import OWNER, Right, User, right_for
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import SandboxAgentError, ShuttingDown
from sandbox_agent.files import FileService
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.agents.handshake import capabilities_member
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.agents.installs import AgentCatalog, Installs
from sandbox_agent.hub.agents.options import AgentOptions
from sandbox_agent.hub.agents.probe import Probe
from sandbox_agent.hub.agents.processes import FindSpec
from sandbox_agent.hub.clients.clients import Clients
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.directories.directories import Directories
from sandbox_agent.hub.extensions.agents import AgentExtensions
from sandbox_agent.hub.extensions.extensions import Extensions
from sandbox_agent.hub.extensions.feed import FeedExtensions
from sandbox_agent.hub.extensions.files import FileExtensions
from sandbox_agent.hub.extensions.processes import ProcessExtensions
from sandbox_agent.hub.extensions.sessions import SessionExtensions
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.processes.processes import Processes, ProcessOptions
from sandbox_agent.hub.quotas import Quotas
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.items import Items
from sandbox_agent.hub.sessions.requests import SessionRequests
from sandbox_agent.hub.sessions.sessions import Sessions
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.hub.watch import Watch
from sandbox_agent.store.base import Store

if TYPE_CHECKING:
    from sandbox_agent.hub.cluster.cluster import Cluster

C = TypeVar("C", bound=Connection)
_log = logging.getLogger(__name__)
_CLOSING = "the server is shutting down"
_CLEAN_UP = 1.0
"""Seconds that cancelled work may take to answer its request when the server stops."""

_READ_HERE = frozenset(
    {
        ClientCall.LIST,
        ClientCall.CREATE,
        ClientCall.LOAD,
        ClientCall.RESUME,
        ClientCall.FORK,
        ClientCall.CONFIGURE,
        ClientCall.FINISH,
    }
)
"""What the hub acts on itself, in the words of version 1. What goes to the agent as it is is worded for the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubOptions:
    agent: AgentOptions
    window_bytes: int
    correlation_bytes: int
    connections: int
    open_sessions: int | None
    running_turns: int | None
    running_turns_per_user: int | None
    refuses_turns_when_degraded: bool
    """Prompts with a turnId, while the store could forget them if we died."""
    room_timeout: float
    """Seconds that a request waits for an agent that does not read its input."""
    unattended: float | None
    """Seconds that a question waits while nobody is attached who could answer it; None waits for ever."""
    session_processes: int
    """Processes that have one session each; more wait for one to be idle, or are refused."""
    feed_bytes: int
    """How much of the feed is kept for those who come back."""
    processes: ProcessOptions
    data_dir: Path


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
        self.clients = Clients(
            store,
            limit=options.connections,
            window_bytes=options.window_bytes,
            correlation_bytes=options.correlation_bytes,
        )
        self.installs = Installs(catalog)
        self.agents = Agents(
            self.installs,
            self._make_agent,
            isolation=catalog.isolation,
            session_processes=options.session_processes,
        )
        turn_ids, items = TurnIds(store, needs_memory=options.refuses_turns_when_degraded), Items(store)
        inventory = Inventory(store, self.feed)
        quotas = Quotas(
            self.agents, options.open_sessions, options.running_turns, turns_per_user=options.running_turns_per_user
        )
        self.directories = Directories(options.data_dir, files, environ, catalog.skills_place)
        self.sessions = Sessions(store, inventory, self.agents, self.clients, turn_ids, self.directories, quotas)
        self.probe = Probe(self.agents, store, self.sessions.growth)
        self._environ = environ
        self._options = options
        self._ask_ids = count(1)
        self.cluster: Cluster | None = None
        """The other nodes, where there are any."""
        self.processes = Processes(environ, files, self.feed, options.processes)
        self._host = Host(environ, files, self.processes)
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
            store,
            unattended=options.unattended,
        )
        self.installs.watch(self._watch.installing)
        store.watch(self._watch.session_lost)
        self._requests = SessionRequests(self.agents, self.sessions, turn_ids, items, self.tasks, environ, quotas)
        self._extensions = Extensions(
            {
                **SessionExtensions(self.sessions).methods,
                **AgentExtensions(catalog, self.installs, self.agents).methods,
                **FileExtensions(files, self.sessions).methods,
                **FeedExtensions(self.feed, self.whole_feed, self.clients).methods,
                **ProcessExtensions(self.processes, self.sessions).methods,
            }
        )
        self._at_once: dict[ClientCall, Callable[[Request], None]] = {
            ClientCall.PROMPT: self._requests.prompt,
            ClientCall.SESSION: self._requests.pass_on,
            ClientCall.AGENT: self._to_agent,
        }
        self._in_a_task = self._calls_in_a_task()

    def join(self, cluster: Cluster) -> None:
        """Become a node among others; before anything else is done. Questions get ids that no other node gives."""
        self.cluster = self._watch.cluster = cluster
        self.tasks.elsewhere = cluster.elsewhere
        self._ask_ids = count(secrets.randbelow(1 << 52) + 1)

    async def whole_feed(self) -> Feed:
        """The changes of all nodes, where there are several."""
        if self.cluster is None or self.feed.is_over:
            return self.feed
        return await self.cluster.feed.opened()

    def admit(
        self,
        agent_id: AgentId,
        capabilities: dict[str, Any],
        client_info: dict[str, Any],
        version: Version,
        *,
        kind: type[C],
        user: User,
    ) -> C:
        """A connection for a client of another node: nothing is started for it. Raises ShuttingDown, TooMany."""
        if self.closing.is_set():
            raise ShuttingDown(_CLOSING)
        self.clients.require_place()
        return self.clients.admit(agent_id, capabilities, client_info, version, self.dispatch, kind=kind, user=user)

    async def open_connection(
        self,
        agent_id: AgentId,
        params: dict[str, Any],
        *,
        kind: type[Connection] = Connection,
        connection_id: ConnectionId | None = None,
        user: User = OWNER,
    ) -> tuple[Connection, dict[str, Any]]:
        """Attach a new client to an agent, starting it if need be; gives the `initialize` result.

        Raises UnknownAgent, AgentNotInstalled, InstallError, AgentStartFailed, and Forbidden for one who may only
        read where the agent would have to be installed first."""
        if self.closing.is_set():
            raise ShuttingDown(_CLOSING)
        self.clients.require_place()
        if not user.may_prompt and not self.installs.describe(agent_id).installed:
            user.require(Right.PROMPT, f"installing agent {agent_id!r} by its first use")
        await self.agents.started(agent_id)
        connection = self.clients.add(
            agent_id, params, self.dispatch, kind=kind, connection_id=connection_id, user=user
        )
        return connection, self._describe_handshake(connection)

    async def close_connection(self, connection_id: str, user: User | None = None) -> None:
        """Close the connection only: its sessions and turns go on. Closing twice is no error.

        A connection of another than `user`, if that is given, is left alone."""
        connection = self.clients.get(ConnectionId(connection_id))
        if connection is None or (user is not None and connection.user != user):
            return
        for agent in self.agents:
            agent.connection_closed(connection.id)
        if self.cluster is not None:
            self.cluster.connection_closed(connection.id)
        await self.clients.close(connection)

    def send(self, connection: Connection, frame: Frame, raw: bytes) -> None:
        """Take a client's notification, or its answer to a request of an agent. Raises Forbidden."""
        connection.last_used = time.monotonic()
        if not connection.user.may_prompt:
            what = frame.method or "to answer a request of the agent"
            connection.user.require(right_for(frame.method or PROMPT), what)
        if frame.is_answer:
            is_known = any(agent.answer(connection.id, frame, raw) for agent in self.agents)
            if not is_known and not (self.cluster is not None and self.cluster.tell(connection, frame, raw)):
                _log.debug("answer to a request that is not open connection=%s id=%r", connection.id, frame.key)
        elif frame.method == CANCEL_REQUEST:
            for agent in self.agents:
                agent.cancel_request(connection.id, raw)
            if self.cluster is not None:
                self.cluster.tell(connection, frame, raw)
        elif self.cluster is not None and self.cluster.tell(connection, frame, raw):
            pass
        elif frame.session is not None:
            self._requests.notify(connection, frame, raw, frame.session)
        else:
            self.agents.front(connection.agent).notify(frame, raw)

    def notify_here(self, connection: Connection, frame: Frame, raw: bytes) -> None:
        """A client's notification for a session that is, or becomes, this node's."""
        self._requests.notify(connection, frame, raw, frame.session or "")

    async def user_ended(self, user: User) -> None:
        """The user's token has expired or was revoked: nobody can use its connections any more."""
        for connection in [c for c in self.clients.values() if c.user == user]:
            await self.close_connection(connection.id)

    async def room(self, connection: Connection, frame: Frame) -> None:
        """Back pressure: return when the connection's agent can take this message. Raises AgentTimeout.

        What does not go to the agent does not wait for it, nor do cancels and answers, which are small."""
        mirror = self.cluster.mirror_for(connection, frame) if self.cluster is not None else None
        if mirror is not None:
            await mirror.room(self._options.room_timeout)
            return
        agent = self._holder(connection, frame)
        if agent.has_room or (frame.is_request and not goes_to_agent(frame.method or "")):
            return
        if not frame.is_request and agent.has_room_for_control:
            return
        await agent.room(timeout=self._options.room_timeout)

    def has_room(self, connection: Connection, frame: Frame) -> bool:
        """Whether the agent that this message is for can take it at once."""
        mirror = self.cluster.mirror_for(connection, frame) if self.cluster is not None else None
        return mirror.has_room if mirror is not None else self._holder(connection, frame).has_room

    def _holder(self, connection: Connection, frame: Frame) -> Agent:
        """The process that a message would go to, as far as can be said at once."""
        session = frame.session
        if session is None:
            return self.agents.front(connection.agent)
        agent = self.agents.knowing(connection.agent, session)
        if agent is not None:  # which is what `resolve_held` prefers, and most messages are for such
            return agent
        record = self.sessions.resolve_held(SessionName(session, prefer=connection.agent))
        return self.agents.of(record.key) if record is not None else self.agents.front(connection.agent)

    async def close(self) -> None:
        """Answer everybody, end streams, stop all agents at once; bounded by the agents' grace."""
        self.closing.set()
        self.tasks.cancel()
        self.feed.close()
        stopping = [asyncio.ensure_future(agent.stop()) for agent in self.agents]
        await asyncio.sleep(0)  # every agent has answered its waiters now; the answers come before the end
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLEAN_UP):
                await self.store.safe()
        await self.tasks.ended(within=_CLEAN_UP)  # as it may end a process that it had started for a new session
        for connection in self.clients.values():
            connection.close("server is shutting down", ShuttingDown(_CLOSING))
        if self.cluster is not None:
            await self.cluster.close()
        await asyncio.gather(*stopping, self.installs.close(), self._host.close(), self.processes.close())

    def dispatch(self, connection: Connection, ticket: int, frame: Frame, raw: bytes) -> None:
        """Take a client's request. Its answer, also that it failed, comes through `connection.reply`."""
        request = Request(connection, ticket, frame, raw)
        connection.last_used = time.monotonic()
        try:
            if self.closing.is_set():
                raise ShuttingDown(_CLOSING)
            if connection.user.right is not Right.ADMIN:
                connection.user.require(right_for(request.method), request.method)
            if self.cluster is None or not self.cluster.forwards(request):
                self._act(request)
        except SandboxAgentError as error:
            request.fail(error)

    def dispatch_here(self, request: Request) -> None:
        """As `dispatch`, for a request whose session is this node's, as far as can be said."""
        try:
            self._act(request)
        except SandboxAgentError as error:
            request.fail(error)

    def _act(self, request: Request) -> None:
        has_session = request.frame.session is not None
        call = client_call(request.method, has_session=has_session)
        if request.connection.version is not Version.V1 and call in _READ_HERE and request.asked is None:
            request = request.in_version_1()
            call = client_call(request.method, has_session=has_session)
        if (act := self._at_once.get(call)) is not None:
            act(request)
        else:
            self.tasks.answer(request, self._in_a_task[call](request))

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

    def _make_agent(self, agent_id: AgentId, find_spec: FindSpec) -> Agent:
        return Agent(
            agent_id,
            store=self.store,
            connections=self.clients.by_id,
            watcher=self._watch,
            on_exit=self._watch.exited,
            on_change=self._watch.changed,
            find_spec=find_spec,
            environ=self._environ,
            ask_ids=self._ask_ids,
            options=self._options.agent,
        )

    def _describe_handshake(self, connection: Connection) -> dict[str, Any]:
        """The agent's own `initialize` result, with our part added."""
        agent = self.agents.front(connection.agent)
        said = msgspec.json.decode(agent.handshake)
        result: dict[str, Any] = {**versions.initialize_result(said, from_=agent.version, to=connection.version)}
        member = capabilities_member(connection.version)
        capabilities = result[member] = {**as_object(result.get(member))}
        ours = {"connectionId": connection.id, "agent": connection.agent, "extensions": self._extensions.names}
        capabilities["_meta"] = {**as_object(capabilities.get("_meta")), META: {"extensions": self._extensions.names}}
        result["_meta"] = {**as_object(result.get("_meta")), META: ours}
        return result

    async def _handshake_again(self, request: Request) -> None:
        await self.agents.started(request.connection.agent)
        request.answer(self._describe_handshake(request.connection))

    def _to_agent(self, request: Request) -> None:
        agent = self.agents.front(request.connection.agent)
        if agent.is_ready:
            agent.call(request)
        else:
            self.tasks.answer(request, self._to_agent_later(agent, request))

    async def _to_agent_later(self, agent: Agent, request: Request) -> None:
        await agent.ready()
        agent.call(request)
