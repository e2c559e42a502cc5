"""The door `/v1/acp/{server_id}` for clients that name their connection themselves."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.methods import UNLIMITED
from sandbox_agent.core.users import User
from sandbox_agent.errors import (
    AgentError,
    ClientGone,
    Conflict,
    InstallError,
    InvalidParams,
    MalformedMessage,
    SandboxAgentError,
    TooMany,
    UnknownConnection,
)
from sandbox_agent.http.asgi import sse
from sandbox_agent.http.asgi.exchange import last_event_id, read_body, require_accept, require_json, user_of
from sandbox_agent.http.asgi.messages import JSON, Abandon, Receive, Respond, Response, Scope, Send, send_whole
from sandbox_agent.http.asgi.problems import problem_response
from sandbox_agent.http.asgi.sse import HEARTBEAT, stream_events
from sandbox_agent.http.doors.requests import (
    answered,
    open_connection,
    plain_request,
    query,
    read_params,
    respond_with,
)
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.mailboxes import EchoConnection
from sandbox_agent.hub.clients.waiters import Answered
from sandbox_agent.hub.hub import Hub

PREFIX = "/v1/acp"
METHODS = ("POST", "GET", "DELETE")
_EARLY_READERS = 1000
_JSON = b"content-type: application/json\r\n"


class _Server(msgspec.Struct):
    """One server id: its connection, once somebody has opened it."""

    opening: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    opened: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    connection: Connection | None = None
    readers: int = 0


class CompatDoor:
    """Raw ASGI for `/v1/acp` and everything below.

    A reader that passes nothing on for `patience` seconds is overtaken by answers. One that comes before the server
    is open waits for it up to `early_wait` seconds."""

    def __init__(
        self, hub: Hub, *, request_timeout: float, body_limit: int, early_wait: float = 600.0, patience: float = 2.0
    ) -> None:
        self._hub = hub
        self._timeout = request_timeout
        self._body_limit = body_limit
        self._known: dict[str, _Server] = {}
        self._early_wait = early_wait
        self._patience = patience
        self._verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server_id = scope["path"].removeprefix(PREFIX).strip("/")
        if server_id:
            await self._verbs[scope["method"]](server_id, scope, receive, send)
        else:
            await send_whole(send, 200, frames.to_json({"servers": self._servers()}), JSON)

    def _servers(self) -> list[dict[str, object]]:
        opened = [(name, server.connection) for name, server in self._known.items()]
        return [
            {"serverId": name, "agent": connection.agent, "createdAtMs": int(connection.created * 1000)}
            for name, connection in opened
            if connection is not None
        ]

    async def _post(self, server_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        require_json(scope)
        require_accept(scope, "application/json")
        agent = query(scope, "agent")
        raw = await read_body(scope, receive, self._body_limit)
        frame = frames.parse(raw)
        if frame.is_request and not frames.is_valid_id(frame.key):
            raise MalformedMessage("a request id must be a string, a number or null")
        if frame.is_request:
            scope["failure"] = partial(_failed_to_open, frame.key, scope["path"])
        connection = await self._opened(server_id, agent, frame, raw, user_of(scope))
        await self._hub.room(connection, frame)
        if frame.is_request:
            scope["failure"] = partial(_failed, frame.key)
            await self._answer(connection, frame, raw, receive, send)
            if "repeat" in scope:
                scope["repeat"](partial(self._post_again, connection))
        else:
            self._hub.send(connection, frame, raw)
            await send_whole(send, 202, b"", None)

    async def _answer(self, connection: Connection, frame: Frame, raw: bytes, receive: Receive, send: Send) -> None:
        timeout = None if frame.method in UNLIMITED else self._timeout
        answer = await answered(connection, frame, raw, receive, timeout)
        if answer is not None:
            await connection.stream.handed_on(answer.last_event_id, patience=self._patience)
            await send_whole(send, 200, answer.line, JSON)

    def _post_again(self, connection: Connection, raw: bytes, respond: Respond) -> Abandon | None:
        frame = plain_request(self._hub, connection, raw)
        if frame is None:
            return None
        key = frame.key

        def give(answer: Answered | SandboxAgentError) -> None:
            if isinstance(answer, SandboxAgentError):
                respond_with(respond, _failed(key, answer))
            elif connection.stream.has_handed_on(answer.last_event_id):
                respond(200, _JSON, answer.line)
            else:
                self._hub.tasks.start(self._respond_later(connection, answer, respond))

        timeout = None if frame.method in UNLIMITED else self._timeout
        return connection.ask(frame, raw, give, timeout=timeout)

    async def _respond_later(self, connection: Connection, answer: Answered, respond: Respond) -> None:
        await connection.stream.handed_on(answer.last_event_id, patience=self._patience)
        respond(200, _JSON, answer.line)

    async def _opened(self, server_id: str, agent: str | None, frame: Frame, raw: bytes, user: User) -> Connection:
        """The connection of this id, opened by the first message. Raises Conflict, InvalidParams, UnknownAgent."""
        server = self._known.setdefault(server_id, _Server())
        try:
            async with server.opening:
                if server.connection is None:
                    if agent is None:
                        raise InvalidParams(f"unknown server {server_id!r}: add ?agent=NAME to its first message")
                    params = read_params(raw) if frame.method == "initialize" else {}
                    found, _ = await open_connection(self._hub, AgentId(agent), params, kind=EchoConnection, user=user)
                    if self._known.get(server_id) is not server:
                        await self._hub.close_connection(found.id)
                        raise UnknownConnection(server_id)
                    server.connection = found
                    server.opened.set()
        finally:
            self._forget_unused(server_id, server)
        connection = server.connection
        _require_own(server_id, connection, user)
        if agent is not None and agent != connection.agent:
            raise Conflict(f"server {server_id!r} runs agent {connection.agent!r}, not {agent!r}")
        return connection

    async def _get(self, server_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """From the first event on, unless the reader says otherwise. It may come before the first message."""
        require_accept(scope, "text/event-stream")
        after = last_event_id(scope) or 0
        server = self._known.get(server_id)
        if server is not None and server.connection is not None:
            _require_own(server_id, server.connection, user_of(scope))
            await stream_events(server.connection.stream.follow(after), scope, receive, send)
            return
        if server is None:
            if sum(server.connection is None for server in self._known.values()) >= _EARLY_READERS:
                raise TooMany(
                    f"limit of streams waiting for a server ({_EARLY_READERS}) reached; send the first message"
                )
            server = self._known[server_id] = _Server()
        await sse.begin(send)
        server.readers += 1
        try:
            await self._wait_for_opening(server, receive, send)
        finally:
            server.readers -= 1
            self._forget_unused(server_id, server)
        if server.connection is None:
            is_closing = self._hub.closing.is_set()
            await sse.finish(
                send,
                "server is shutting down" if is_closing else "timed out waiting for the first message to this server",
            )
        elif server.connection.user != user_of(scope):
            await sse.finish(send, "another user has opened this server id")
        else:
            await stream_events(server.connection.stream.follow(0), scope, receive, send, has_begun=True)

    async def _wait_for_opening(self, server: _Server, receive: Receive, send: Send) -> None:
        """Return when it is open or has waited long enough. Raises ClientGone when the reader leaves first."""
        opening = asyncio.create_task(server.opened.wait())
        leaving = asyncio.create_task(sse.peer_left(receive))
        closing = asyncio.create_task(self._hub.closing.wait())
        awaited = {opening, leaving, closing}
        try:
            left = self._early_wait
            while left > 0:
                pause = min(HEARTBEAT, left)
                done, _ = await asyncio.wait(awaited, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                if leaving in done:
                    raise ClientGone
                if done:
                    return
                left -= pause
                await sse.beat(send)
        finally:
            for task in awaited:
                task.cancel()

    async def _delete(self, server_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        known = self._known.get(server_id)
        if known is not None and known.connection is not None:
            _require_own(server_id, known.connection, user_of(scope))
        server = self._known.pop(server_id, None)
        if server is not None:
            server.opened.set()
            if server.connection is not None:
                await self._hub.close_connection(server.connection.id)
        await send_whole(send, 204, b"", None)

    def _forget_unused(self, server_id: str, server: _Server) -> None:
        is_unused = server.connection is None and not server.readers and not server.opening.locked()
        if is_unused and self._known.get(server_id) is server:
            del self._known[server_id]


def _require_own(server_id: str, connection: Connection, user: User) -> None:
    """Raises Conflict: server ids are chosen by clients, so two users may choose the same."""
    if connection.user != user:
        raise Conflict(f"server {server_id!r} is in use by another user; choose another id")


def _failed(key: bytes, error: SandboxAgentError) -> Response:
    """These clients take any status but 2xx for the end of the connection: every failure is an answer."""
    return Response(200, frames.failure(key, error), JSON)


def _failed_to_open(key: bytes, path: str, error: SandboxAgentError) -> Response:
    """There is no connection yet: only what the agent got wrong is an answer."""
    is_answer = isinstance(error, AgentError | InstallError)
    return _failed(key, error) if is_answer else problem_response(error, instance=path)
