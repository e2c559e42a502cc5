"""The door `/acp` over WebSocket: one socket both ways, every message one frame.

The Nth frame that the server sends on a connection is its event N. So a client that lost its socket can name the
connection and the number of frames it has got, and goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib

from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import ConnectionId
from sandbox_agent.errors import AgentTimeout, ClientError, MalformedMessage, SandboxAgentError, UnknownConnection
from sandbox_agent.http.asgi.exchange import event_id, header, user_of
from sandbox_agent.http.asgi.messages import Receive, Scope, Send
from sandbox_agent.http.asgi.problems import outcome
from sandbox_agent.http.asgi.websocket import Close, accept, close, payload
from sandbox_agent.http.doors.requests import open_connection, query, read_params, wanted_agent
from sandbox_agent.hub.clients.clients import new_connection_id
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.stream import Reader
from sandbox_agent.hub.hub import Hub

_CONNECTION = b"acp-connection-id"
_TICK = 15.0
_HANDFUL = 64


class AcpSocketDoor:
    """Raw ASGI for the upgrade. A connection whose socket broke is kept for `grace` seconds."""

    def __init__(
        self, hub: Hub, *, default_agent: str | None, body_limit: int, grace: float = 60.0, stall: float = 60.0
    ) -> None:
        self._hub = hub
        self._default_agent = default_agent
        self._body_limit = body_limit
        self._closing: dict[ConnectionId, asyncio.Task[None]] = {}
        self._grace = grace
        self._stall = stall

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        socket = _Socket(self._hub, self._body_limit, self._stall)
        try:
            self._reattach(socket, scope)
        except ClientError:
            await accept(send, scope, [])  # to open and close at once is the only way to tell a browser why
            raise
        is_over = False
        try:
            await accept(send, scope, [(_CONNECTION, socket.id.encode())])
            is_over = await socket.run(scope, receive, send, self._default_agent)
        except ClientError:
            is_over = True  # nothing is kept for one who breaks the rules
            raise
        finally:
            if socket.connection is not None and not socket.is_taken_over:
                self._let_go(socket.id, 0.0 if is_over else self._grace)

    def _reattach(self, socket: _Socket, scope: Scope) -> None:
        """Go on with the connection that the client names, if it does. Raises UnknownConnection, InvalidParams."""
        named = header(scope, _CONNECTION) or query(scope, "connection_id")
        if named is None:
            return
        connection = self._hub.clients.find(named, user_of(scope))
        if type(connection) is not Connection:
            raise UnknownConnection(named)
        last = header(scope, b"last-event-id") or query(scope, "last_event_id") or "0"
        socket.attach(connection, event_id(last))
        keeping = self._closing.pop(connection.id, None)
        if keeping is not None:
            keeping.cancel()

    def _let_go(self, connection_id: ConnectionId, delay: float) -> None:
        task = asyncio.get_running_loop().create_task(self._close_later(connection_id, delay))
        self._closing[connection_id] = task

    async def _close_later(self, connection_id: ConnectionId, delay: float) -> None:
        await asyncio.sleep(delay)
        self._closing.pop(connection_id, None)
        await self._hub.close_connection(connection_id)


class _Socket:
    """One accepted socket. It has a connection as soon as `initialize` has been answered."""

    def __init__(self, hub: Hub, body_limit: int, stall: float) -> None:
        self._hub = hub
        self._body_limit = body_limit
        self._stall = stall
        self._reader: asyncio.Future[Reader] = asyncio.get_running_loop().create_future()
        self.id = new_connection_id()
        self.connection: Connection | None = None

    def attach(self, connection: Connection, after: int) -> None:
        self._reader.set_result(connection.stream.read_from(after))
        self.connection = connection
        self.id = connection.id

    @property
    def is_taken_over(self) -> bool:
        return self._reader.done() and self._reader.result().stopped.is_set()

    async def run(self, scope: Scope, receive: Receive, send: Send, default_agent: str | None) -> bool:
        """Until either side ends it; whether the client closed in good order."""
        reading = asyncio.create_task(self._read(scope, receive, send, default_agent))
        writing = asyncio.create_task(self._write(send))
        try:
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
            code, reason = writing.result()
            if code is not Close.STALLED:
                await close(send, code, reason)
            return False
        finally:
            for task in (reading, writing):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(reading, writing, return_exceptions=True)

    async def _read(self, scope: Scope, receive: Receive, send: Send, default_agent: str | None) -> bool:
        """Take messages; gives whether the peer said goodbye. Raises ClientError for one that cannot be taken."""
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return message.get("code") in {Close.NORMAL, Close.GOING_AWAY}
            raw = payload(message, self._body_limit)
            frame = frames.parse(raw)
            if frame.is_request and not frames.is_valid_id(frame.key):
                raise MalformedMessage("a request id must be a string, a number or null")
            if self.connection is None:
                await self._open(scope, frame, raw, send, default_agent)
                continue
            try:
                await self._hub.room(self.connection, frame)
            except AgentTimeout as error:
                if frame.is_request:
                    self.connection.deliver_own(frame.session, frames.failure(frame.key, error))
                continue
            if frame.is_request:
                self.connection.submit(frame, frames.one_line(raw))
            else:
                self._hub.send(self.connection, frame, frames.one_line(raw))

    async def _open(self, scope: Scope, frame: Frame, raw: bytes, send: Send, default_agent: str | None) -> None:
        """Answer the first request: with the handshake on the stream, or with why there is none."""
        if not frame.is_request:
            return
        opened = await outcome(self._shake_hands(scope, frame, raw, default_agent), scope["path"])
        if isinstance(opened, SandboxAgentError):
            await send({"type": "websocket.send", "text": frames.failure(frame.key, opened).decode()})
        else:
            self.attach(opened, 0)

    async def _shake_hands(self, scope: Scope, frame: Frame, raw: bytes, default_agent: str | None) -> Connection:
        """The connection, with the answer to `initialize` on its stream. Raises what stands in the way."""
        if frame.method != "initialize":
            raise MalformedMessage(f"the first request must be initialize, not {frame.method}")
        params = read_params(raw)
        agent = wanted_agent(scope, params, default_agent)
        connection, result = await open_connection(self._hub, agent, params, connection_id=self.id, user=user_of(scope))
        connection.deliver_own(None, frames.result(frame.key, result))
        return connection

    async def _write(self, send: Send) -> tuple[Close, str]:
        """Send every event in order; gives why it ended. A peer that takes nothing in time ends it too."""
        reader = await asyncio.shield(self._reader)
        try:
            while not reader.is_over:
                batch = await reader.take(wait=_TICK)
                if batch is not None:
                    await self._send_lines(send, batch.lines)
        except TimeoutError:
            return Close.STALLED, "client is not reading"
        finally:
            reader.close()
        return (Close.TAKEN_OVER if self.is_taken_over else Close.GOING_AWAY), reader.over_because

    async def _send_lines(self, send: Send, lines: list[bytes]) -> None:
        """Raises TimeoutError when the peer takes none of a handful in time."""
        for first in range(0, len(lines), _HANDFUL):
            async with asyncio.timeout(self._stall):
                for line in lines[first : first + _HANDFUL]:
                    await send({"type": "websocket.send", "text": line.decode(errors="replace")})
