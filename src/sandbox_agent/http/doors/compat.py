"""The door `/v1/acp/{server_id}` for clients that name their connection themselves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.methods import UNLIMITED
from sandbox_agent.errors import (
    AgentError,
    Conflict,
    InstallError,
    InvalidParams,
    MalformedMessage,
    SandboxAgentError,
    TooMany,
    UnknownConnection,
)
from sandbox_agent.http.asgi import sse
from sandbox_agent.http.asgi.problems import JSON, Receive, Scope, Send, send_whole
from sandbox_agent.http.asgi.requests import ClientGone, last_event_id, read_body, require_accept, require_json
from sandbox_agent.http.asgi.sse import HEARTBEAT, stream_events
from sandbox_agent.http.doors.failures import answer_failures
from sandbox_agent.http.doors.handshake import query, read_params
from sandbox_agent.http.doors.round_trip import answered, ask_again
from sandbox_agent.http.server.direct import Abandon, Respond
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.mailboxes import EchoConnection
from sandbox_agent.hub.clients.waiters import Answered
from sandbox_agent.hub.hub import Hub

PREFIX = "/v1/acp"
METHODS = ("POST", "GET", "DELETE")
_EARLY_READERS = 1000
_JSON = b"content-type: application/json\r\n"


@dataclass(slots=True)
class _Place:
    """One server id: its connection, once somebody has opened it."""

    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    connection: Connection | None = None
    readers: int = 0


class PeerDoor:
    """Raw ASGI for `/v1/acp` and everything below.

    A reader that passes nothing on for `patience` seconds is overtaken by answers. One that comes before the server
    is open waits for it up to `early_wait` seconds."""

    def __init__(
        self, hub: Hub, *, request_timeout: float, body_limit: int, early_wait: float = 600.0, patience: float = 2.0
    ) -> None:
        self._hub = hub
        self._timeout = request_timeout
        self._body_limit = body_limit
        self._early_wait = early_wait
        self._patience = patience
        self._places: dict[str, _Place] = {}
        self._verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server_id = scope["path"].removeprefix(PREFIX).strip("/")
        if server_id:
            serving = self._verbs[scope["method"]](server_id, scope, receive, send)
            await answer_failures(serving, scope, send)
        else:
            await send_whole(send, 200, frames.to_json({"servers": self._servers()}), JSON)

    def _servers(self) -> list[dict[str, object]]:
        opened = [(name, place.connection) for name, place in self._places.items()]
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
        try:
            connection = await self._opened(server_id, agent, frame, raw)
        except (AgentError, InstallError) as error:
            if not frame.is_request:
                raise
            await send_whole(send, 200, frames.failure(frame.key, error), JSON)
            return
        await self._hub.room(connection)
        if frame.is_request:
            await self._answer(connection, frame, raw, receive, send)
            if "repeat" in scope:
                scope["repeat"](partial(self._post_again, connection))
        else:
            self._hub.send(connection, frame, raw)
            await send_whole(send, 202, b"", None)

    async def _answer(self, connection: Connection, frame: Frame, raw: bytes, receive: Receive, send: Send) -> None:
        """These clients take any status but 2xx for the end of the connection: every failure is an answer."""
        timeout = None if frame.method in UNLIMITED else self._timeout
        try:
            answer = await answered(connection, frame, raw, receive, timeout)
        except SandboxAgentError as error:
            await send_whole(send, 200, frames.failure(frame.key, error), JSON)
            return
        if answer is not None:
            await connection.stream.handed_on(answer.last_event_id, patience=self._patience)
            await send_whole(send, 200, answer.line, JSON)

    def _post_again(self, connection: Connection, raw: bytes, respond: Respond) -> Abandon | None:
        def give(frame: Frame, answer: Answered | SandboxAgentError) -> None:
            if isinstance(answer, SandboxAgentError):
                respond(200, _JSON, frames.failure(frame.key, answer))
            elif connection.stream.has_handed_on(answer.last_event_id):
                respond(200, _JSON, answer.line)
            else:
                self._hub.tasks.start(self._respond_later(connection, answer, respond))

        return ask_again(self._hub, connection, raw, give, self._timeout)

    async def _respond_later(self, connection: Connection, answer: Answered, respond: Respond) -> None:
        await connection.stream.handed_on(answer.last_event_id, patience=self._patience)
        respond(200, _JSON, answer.line)

    async def _opened(self, server_id: str, agent: str | None, frame: Frame, raw: bytes) -> Connection:
        """The connection of this id, opened by the first message. Raises Conflict, InvalidParams, UnknownAgent."""
        place = self._places.setdefault(server_id, _Place())
        try:
            async with place.opening:
                if place.connection is None:
                    if agent is None:
                        raise InvalidParams(f"server {server_id!r} is not open: its first message needs ?agent=NAME")
                    params = read_params(raw) if frame.method == "initialize" else {}
                    found, _ = await self._hub.open_connection(AgentId(agent), params, kind=EchoConnection)
                    if self._places.get(server_id) is not place:
                        await self._hub.close_connection(found.id)
                        raise UnknownConnection(server_id)
                    place.connection = found
                    place.opened.set()
        finally:
            self._forget_unused(server_id, place)
        connection = place.connection
        if agent is not None and agent != connection.agent:
            raise Conflict(f"server {server_id!r} runs agent {connection.agent!r}, not {agent!r}")
        return connection

    async def _get(self, server_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """From the first event on, unless the reader says otherwise. It may come before the first message."""
        require_accept(scope, "text/event-stream")
        after = last_event_id(scope) or 0
        place = self._places.get(server_id)
        if place is not None and place.connection is not None:
            await stream_events(place.connection.stream.follow(after), scope, receive, send)
            return
        if place is None:
            if sum(place.connection is None for place in self._places.values()) >= _EARLY_READERS:
                raise TooMany(f"{_EARLY_READERS} streams wait for servers that are not open")
            place = self._places[server_id] = _Place()
        await sse.begin(send)
        place.readers += 1
        try:
            await self._wait_for_opening(place, receive, send)
        finally:
            place.readers -= 1
            self._forget_unused(server_id, place)
        if place.connection is None:
            is_closing = self._hub.closing.is_set()
            await sse.finish(send, "server is shutting down" if is_closing else "nobody has opened this server")
        else:
            await stream_events(place.connection.stream.follow(0), scope, receive, send, has_begun=True)

    async def _wait_for_opening(self, place: _Place, receive: Receive, send: Send) -> None:
        """Return when it is open or has waited long enough. Raises ClientGone when the reader leaves first."""
        opening = asyncio.create_task(place.opened.wait())
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
        place = self._places.pop(server_id, None)
        if place is not None:
            place.opened.set()
            if place.connection is not None:
                await self._hub.close_connection(place.connection.id)
        await send_whole(send, 204, b"", None)

    def _forget_unused(self, server_id: str, place: _Place) -> None:
        is_unused = place.connection is None and not place.readers and not place.opening.locked()
        if is_unused and self._places.get(server_id) is place:
            del self._places[server_id]
