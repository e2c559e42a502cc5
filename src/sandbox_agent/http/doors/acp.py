"""The door `/acp`: over HTTP every answer is on a stream, one for the connection and one for each session."""

from __future__ import annotations

from functools import partial

from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import SessionId, SessionName
from sandbox_agent.errors import (
    BatchNotSupported,
    InvalidParams,
    MalformedMessage,
    MissingConnection,
    UnknownConnection,
)
from sandbox_agent.http.asgi.exchange import header, last_event_id, read_body, require_accept, require_json, user_of
from sandbox_agent.http.asgi.messages import JSON, Abandon, Headers, Receive, Respond, Scope, Send, send_whole
from sandbox_agent.http.asgi.sse import stream_events
from sandbox_agent.http.doors.acp_websocket import AcpSocketDoor
from sandbox_agent.http.doors.requests import open_connection, plain_request, read_params, wanted_agent
from sandbox_agent.hub.clients.mailboxes import MailboxConnection
from sandbox_agent.hub.hub import Hub

CONNECTION = b"acp-connection-id"
SESSION = b"acp-session-id"
METHODS = ("POST", "GET", "DELETE")


class AcpDoor:
    """Raw ASGI for POST, GET and DELETE, and for the WebSocket."""

    def __init__(self, hub: Hub, *, default_agent: str | None, body_limit: int) -> None:
        self._hub = hub
        self._default_agent = default_agent
        self._body_limit = body_limit
        self._socket = AcpSocketDoor(hub, default_agent=default_agent, body_limit=body_limit)
        self._verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        await self._verbs[scope["method"]](scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_json(scope)
        raw = await read_body(scope, receive, self._body_limit)
        if raw.lstrip()[:1] == b"[":
            raise BatchNotSupported("JSON-RPC batches are not supported; send one message per request")
        frame = frames.parse(raw)
        if header(scope, CONNECTION) is None:
            await self._open(scope, frame, raw, send)
            return
        connection = self._connection(scope)
        _require_same_session(scope, frame)
        await self._hub.room(connection, frame)
        if not frame.is_request:
            self._hub.send(connection, frame, raw)
        elif frames.is_valid_id(frame.key):
            connection.submit(frame, raw)
        else:
            raise MalformedMessage("a request id must be a string, a number or null")
        await send_whole(send, 202, b"", None)
        if "repeat" in scope:
            scope["repeat"](partial(self._post_again, connection, header(scope, SESSION)))

    def _post_again(
        self, connection: MailboxConnection, session: str | None, raw: bytes, respond: Respond
    ) -> Abandon | None:
        """A message like one that was accepted, without waiting: see `http.server.direct`."""
        frame = plain_request(self._hub, connection, raw)
        if frame is None or (session is not None and frame.session not in (None, session)):
            return None
        connection.submit(frame, raw)
        respond(202, b"", b"")
        return _nothing_to_abandon

    async def _open(self, scope: Scope, frame: Frame, raw: bytes, send: Send) -> None:
        if frame.method != "initialize" or not frame.is_request:
            raise MissingConnection("missing header Acp-Connection-Id; only initialize may be sent without it")
        require_accept(scope, "application/json")
        params = read_params(raw)
        agent = wanted_agent(scope, params, self._default_agent)
        connection, result = await open_connection(
            self._hub, agent, params, kind=MailboxConnection, user=user_of(scope)
        )
        headers: Headers = [(CONNECTION, connection.id.encode())]
        await send_whole(send, 200, frames.result(frame.key, result), JSON, headers)

    async def _get(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_accept(scope, "text/event-stream")
        connection = self._connection(scope)
        session = header(scope, SESSION)
        stream = connection.stream if session is None else connection.mailbox(self._session_id(connection, session))
        headers: Headers = [(CONNECTION, connection.id.encode())]
        if session is not None:
            headers.append((SESSION, session.encode("latin-1")))
        await stream_events(stream.read_from(last_event_id(scope)), scope, receive, send, headers)

    async def _delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._hub.close_connection(_connection_id(scope), user_of(scope))
        await send_whole(send, 202, b"", None)

    def _connection(self, scope: Scope) -> MailboxConnection:
        """Raises UnknownConnection also for a connection of another door."""
        connection_id = _connection_id(scope)
        found = self._hub.clients.find(connection_id, user_of(scope))
        if not isinstance(found, MailboxConnection):
            raise UnknownConnection(connection_id)
        return found

    def _session_id(self, connection: MailboxConnection, name: str) -> SessionId:
        """The agent's own id where the client uses an alias."""
        record = self._hub.sessions.resolve_held(SessionName(name, prefer=connection.agent))
        return SessionId(name) if record is None else record.session_id


def _nothing_to_abandon() -> None:
    """It was accepted: its answer goes onto the stream in any case."""


def _connection_id(scope: Scope) -> str:
    found = header(scope, CONNECTION)
    if found is None:
        raise MissingConnection("missing header Acp-Connection-Id")
    return found


def _require_same_session(scope: Scope, frame: Frame) -> None:
    """The header may be absent; it may not contradict the message."""
    named = header(scope, SESSION)
    if named is not None and frame.session is not None and named != frame.session:
        raise InvalidParams(f"header Acp-Session-Id is {named!r} but params.sessionId is {frame.session!r}")
