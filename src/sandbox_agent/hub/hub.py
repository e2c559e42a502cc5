"""The middle of everything: doors hand requests in, agents and the store are behind it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import msgspec

from sandbox_agent.core import effects as fx
from sandbox_agent.core import frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId, ConnectionId, SessionId, SessionKey
from sandbox_agent.core.methods import CANCEL_REQUEST, ClientCall, client_call
from sandbox_agent.errors import (
    AgentExited,
    SandboxAgentError,
    ShuttingDown,
    TooMany,
    UnknownConnection,
)
from sandbox_agent.files import FileService
from sandbox_agent.hub.agents.agent import Agent, AgentOptions
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.agents.installs import AgentCatalog, Installs
from sandbox_agent.hub.agents.terminals import TERMINAL_OUTPUT
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.clients.stream import Stream
from sandbox_agent.hub.extensions.agents import AgentExtensions
from sandbox_agent.hub.extensions.files import FileExtensions
from sandbox_agent.hub.extensions.sessions import Extensions
from sandbox_agent.hub.sessions import endings
from sandbox_agent.hub.sessions.attachment import Attachment
from sandbox_agent.hub.sessions.conversations import Conversations
from sandbox_agent.hub.sessions.inventory import Sessions
from sandbox_agent.hub.sessions.items import Items
from sandbox_agent.hub.sessions.listing import list_sessions
from sandbox_agent.hub.sessions.turns import Turns
from sandbox_agent.store.base import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubOptions:
    agent: AgentOptions
    window_bytes: int
    connections: int
    refuses_turns_when_degraded: bool
    """Prompts with a turnId, while the store could forget them if we died."""
    unattended: float | None
    """Seconds that a question waits while nobody is attached who could answer it; None waits for ever."""


class Hub:
    """Opens and closes connections, and decides for each request who answers it."""

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
        self.installs = Installs(catalog)
        self.sessions = Sessions(store)
        self.agents: dict[AgentId, Agent] = {}
        self.connections: dict[ConnectionId, Connection] = {}
        self._environ = environ
        self._options = options
        self._ask_ids = count(1)
        self._host = Host(environ, files)
        self._turns = Turns(store, needs_memory=options.refuses_turns_when_degraded)
        self._attachment = Attachment(store, self.sessions, self.agent)
        self._items = Items(store)
        self._item_listeners: set[ConnectionId] = set()
        self._conversations = Conversations(self, self._attachment, self._turns, self._items, environ)
        agents = AgentExtensions(catalog, self.installs, self.agents)
        self._extensions = Extensions(self, {**FileExtensions(files, self.sessions).methods, **agents.methods})
        self._tasks: set[asyncio.Task[None]] = set()
        self.closing = asyncio.Event()
        self._calls: dict[ClientCall, Callable[[Request], None]] = {
            ClientCall.INITIALIZE: self._initialize_again,
            ClientCall.LIST: lambda request: self.spawn(request, list_sessions(self.sessions, request)),
            ClientCall.CREATE: lambda request: self.spawn(request, self._conversations.create(request)),
            ClientCall.ATTACH: lambda request: self.spawn(request, self._conversations.attach(request)),
            ClientCall.FORK: lambda request: self.spawn(request, self._conversations.fork(request)),
            ClientCall.PROMPT: self._conversations.prompt,
            ClientCall.CONFIGURE: lambda request: self.spawn(request, self._conversations.configure(request)),
            ClientCall.FINISH: lambda request: self.spawn(request, self._conversations.finish(request)),
            ClientCall.SERVER: lambda request: self.spawn(request, self._extensions.answer(request)),
            ClientCall.SESSION: self._conversations.pass_on,
            ClientCall.AGENT: self._to_agent,
        }

    def agent(self, agent_id: AgentId) -> Agent:
        """The one shared agent of that id, made on first use."""
        found = self.agents.get(agent_id)
        if found is None:
            found = self.agents[agent_id] = Agent(
                agent_id,
                store=self.store,
                connections=self.connections,
                watcher=self,
                on_exit=self._agent_exited,
                find_spec=self.installs.ensure,
                environ=self._environ,
                ask_ids=self._ask_ids,
                options=self._options.agent,
            )
        return found

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
        if len(self.connections) >= self._options.connections:
            raise TooMany(f"{len(self.connections)} connections are open already")
        await self.installs.ensure(agent_id)  # however long that takes: no limit holds for it
        await self.agent(agent_id).ready()
        connection_id = connection_id or new_connection_id()
        capabilities, info = params.get("clientCapabilities"), params.get("clientInfo")
        connection = kind(
            connection_id,
            agent_id,
            capabilities if isinstance(capabilities, dict) else {},
            info if isinstance(info, dict) else {},
            lambda own, part: Stream(self.store, own, memory_limit=self._options.window_bytes // part),
            self.dispatch,
        )
        self.connections[connection_id] = connection
        if _wants_items(capabilities):
            self._item_listeners.add(connection_id)
        return connection, self.describe_handshake(connection)

    def connection(self, connection_id: str) -> Connection:
        """Raises UnknownConnection."""
        found = self.connections.get(ConnectionId(connection_id))
        if found is None:
            raise UnknownConnection(connection_id)
        return found

    async def close_connection(self, connection_id: str) -> None:
        """Close the connection only: its sessions and turns go on. Closing twice is no error."""
        connection = self.connections.pop(ConnectionId(connection_id), None)
        if connection is None:
            return
        connection.close("connection closed", UnknownConnection(connection_id))
        self._item_listeners.discard(connection.id)
        for agent in self.agents.values():
            agent.apply(agent.relay.connection_closed(connection.id))
        for stream in connection.streams:
            await self.store.drop(stream.own)

    def describe_handshake(self, connection: Connection) -> dict[str, Any]:
        """The agent's own `initialize` result, with our part added."""
        result: dict[str, Any] = msgspec.json.decode(self.agent(connection.agent).handshake)
        capabilities = result.setdefault("agentCapabilities", {})
        ours = {"connectionId": connection.id, "agent": connection.agent, "extensions": self._extensions.names}
        capabilities["_meta"] = {**(capabilities.get("_meta") or {}), META: {"extensions": self._extensions.names}}
        result["_meta"] = {**(result.get("_meta") or {}), META: ours}
        return result

    def dispatch(self, connection: Connection, ticket: int, frame: Frame, raw: bytes) -> None:
        """Take a client's request. Its answer, also that it failed, comes through `connection.reply`."""
        request = Request(connection, ticket, frame, raw)
        connection.last_used = time.monotonic()
        try:
            self._refuse_when_closing()
            self._calls[client_call(request.method, has_session=frame.session is not None)](request)
        except SandboxAgentError as error:
            request.fail(error)

    def send(self, connection: Connection, frame: Frame, raw: bytes) -> None:
        """Take a client's notification, or its answer to a request of an agent."""
        connection.last_used = time.monotonic()
        if frame.is_answer:
            for agent in self.agents.values():
                if agent.relay.asks.has(frame.key):
                    agent.apply(agent.relay.answer(connection.id, frame, raw))
                    return
            _log.debug("answer to a request that is not open connection=%s id=%r", connection.id, frame.key)
        elif frame.method == CANCEL_REQUEST:
            for agent in self.agents.values():
                agent.apply(agent.relay.cancel_request(connection.id, raw))
        elif frame.session is not None:
            self._notify_session(connection, frame, raw)
        else:
            agent = self.agent(connection.agent)
            agent.apply(agent.relay.notify(frame, raw))

    async def room(self, connection: Connection) -> None:
        """Back pressure: return when the connection's agent can take more."""
        agent = self.agents.get(connection.agent)
        if agent is not None:
            await agent.room()

    def has_room(self, connection: Connection) -> bool:
        """Whether the connection's agent can take more at once."""
        agent = self.agents.get(connection.agent)
        return agent is None or agent.has_room

    async def close(self) -> None:
        """Answer everybody, end streams, stop all agents at once; bounded by the agents' grace."""
        self.closing.set()
        for task in self._tasks:
            task.cancel()
        stopping = [asyncio.ensure_future(agent.stop()) for agent in self.agents.values()]
        await asyncio.sleep(0)  # every agent has answered its waiters now; the answers come before the end
        for connection in self.connections.values():
            connection.close("server is shutting down", ShuttingDown("the server is shutting down"))
        await asyncio.gather(*stopping, self.installs.close(), self._host.close())

    def observed(self, key: SessionKey, kind: str, line: bytes) -> None:
        self.sessions.observe(key, kind, line)

    def prompt_answered(self, agent: AgentId, effect: fx.Reply) -> None:
        self._turns.answered(effect.connection, effect.ticket, effect.line, has_run=effect.has_run)
        if effect.session is None or not effect.has_run:
            return
        key = SessionKey(agent, effect.session)
        self.agents[agent].lifecycle.worked()
        record = self.sessions.held(key)
        if record is not None:
            self.sessions.save(record)
        if self._item_listeners:
            self.background(self._items.tell(key, lambda: self._listeners(key)))
        else:
            self._items.skip(key)

    def _listeners(self, key: SessionKey) -> list[Connection]:
        route = self.agents[key.agent].relay.routes.get(key.session)
        attached = route.connections if route is not None else ()
        return [self.connections[c] for c in attached if c in self._item_listeners and c in self.connections]

    def wake(self, key: SessionKey) -> None:
        self.background(self._attachment.wake(key))

    def unattended(self, agent: AgentId, ask: int) -> None:
        if self._options.unattended is not None:
            asked = self.agent(agent)
            asyncio.get_running_loop().call_later(
                self._options.unattended, lambda: asked.apply(asked.relay.expire(ask))
            )

    def serve(self, agent: AgentId, effect: fx.Serve) -> None:
        self.background(self._serve(self.agent(agent), effect))

    async def _serve(self, agent: Agent, effect: fx.Serve) -> None:
        record = self.sessions.held(SessionKey(agent.id, effect.session)) if effect.session is not None else None
        try:
            tell = partial(self._tell_terminal, agent, effect.session) if effect.session is not None else None
            result = await self._host.serve(effect.method, effect.params, record.cwd if record else None, tell)
            member = b'"result":%b' % frames.to_json(result)
        except SandboxAgentError as error:
            member = b'"error":%b' % frames.to_json({"code": error.code, "message": error.detail})
        agent.apply(agent.relay.served(effect.ask, member))

    def _tell_terminal(self, agent: Agent, session: SessionId, news: dict[str, Any]) -> None:
        line = frames.notification(TERMINAL_OUTPUT, {"sessionId": session, **news})
        agent.apply(agent.relay.publish(session, line))

    def _agent_exited(self, agent: Agent, error: AgentExited, sessions: list[SessionId]) -> None:
        for connection in self.connections.values():
            if connection.agent == agent.id:
                connection.agent_exited(error)
        for session in sessions:
            record = self.sessions.held(SessionKey(agent.id, session))
            if agent.can_revive:
                endings.interrupted(agent, session, error)
            elif record is not None:
                endings.end(agent, self.sessions, record, endings.crashed(error))

    def _initialize_again(self, request: Request) -> None:
        self.spawn(request, self._answer_handshake(request))

    async def _answer_handshake(self, request: Request) -> None:
        await self.agent(request.connection.agent).ready()
        request.answer(self.describe_handshake(request.connection))

    def _to_agent(self, request: Request) -> None:
        agent = self.agent(request.connection.agent)
        if agent.is_ready:
            agent.call(request)
        else:
            self.spawn(request, self._to_agent_later(agent, request))

    async def _to_agent_later(self, agent: Agent, request: Request) -> None:
        await agent.ready()
        agent.call(request)

    def _notify_session(self, connection: Connection, frame: Frame, raw: bytes) -> None:
        session = frame.session
        agent = self.agents.get(connection.agent)
        if agent is None or session not in agent.relay.routes:
            record = self.sessions.held_by_name(session, connection.agent) if session is not None else None
            if record is None:
                _log.info("notification for unknown session connection=%s method=%s", connection.id, frame.method)
                return
            agent = self.agent(record.agent)
            raw = frames.with_params(raw, {"sessionId": record.session_id})
            frame = frames.parse(raw)
        agent.apply(agent.relay.notify(frame, raw))

    def _refuse_when_closing(self) -> None:
        if self.closing.is_set():
            raise ShuttingDown("the server is shutting down")

    def spawn(self, request: Request, work: Coroutine[Any, Any, None]) -> None:
        """Work on a request in a task of its own: it goes on when the client that asked goes away."""
        self.background(_failing_to(request, work))

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, SandboxAgentError):
            _log.error("background work failed", exc_info=error)


def new_connection_id() -> ConnectionId:
    return ConnectionId(f"conn_{secrets.token_urlsafe(16)}")


def _wants_items(capabilities: Any) -> bool:
    meta = capabilities.get("_meta") if isinstance(capabilities, dict) else None
    ours = meta.get(META) if isinstance(meta, dict) else None
    return isinstance(ours, dict) and ours.get("itemCompleted") is True


async def _failing_to(request: Request, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except SandboxAgentError as error:
        request.fail(error)
    except asyncio.CancelledError:
        request.fail(ShuttingDown("the server is shutting down"))
        raise
    except Exception:  # noqa: BLE001 - the boundary of a task; logged with its traceback
        _log.exception("request failed method=%s connection=%s", request.method, request.connection.id)
        request.fail(SandboxAgentError(f"{request.method} failed inside the server; its log says why"))
