"""The door `/v1/rpc`: POST a message, GET the stream of events, DELETE the connection."""

from __future__ import annotations

from functools import partial

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.methods import UNLIMITED
from sandbox_agent.core.users import User
from sandbox_agent.errors import (
    InvalidParams,
    MalformedMessage,
    MissingConnection,
    SandboxAgentError,
)
from sandbox_agent.http.asgi.exchange import header, last_event_id, read_body, require_accept, require_json, user_of
from sandbox_agent.http.asgi.messages import JSON, Abandon, Headers, Receive, Respond, Scope, Send, send_whole
from sandbox_agent.http.asgi.problems import problem_response
from sandbox_agent.http.asgi.sse import stream_events
from sandbox_agent.http.doors.requests import (
    agent_in_meta,
    answered,
    open_connection,
    plain_request,
    read_params,
    respond_with,
)
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.waiters import Answered
from sandbox_agent.hub.hub import Hub

CONNECTION = b"x-acp-connection-id"
LAST_EVENT = b"x-acp-last-event-id"
METHODS = ("POST", "GET", "DELETE")
_ANSWERED = b"x-acp-last-event-id: %d\r\ncontent-type: application/json\r\n"


class RpcDoor:
    """Raw ASGI: this is the hot path."""

    def __init__(self, hub: Hub, *, request_timeout: float, body_limit: int) -> None:
        self._hub = hub
        self._timeout = request_timeout
        self._body_limit = body_limit
        self._verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._verbs[scope["method"]](scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_json(scope)
        require_accept(scope, "application/json")
        raw = await read_body(scope, receive, self._body_limit)
        frame = frames.parse(raw)
        connection_id = header(scope, CONNECTION)
        if connection_id is None:
            await self._open(frame, raw, send, user_of(scope))
            return
        connection = self._hub.clients.find(connection_id, user_of(scope))
        await self._hub.room(connection, frame)
        if not frame.is_request:
            self._hub.send(connection, frame, raw)
            await send_whole(send, 202, b"", None)
            return
        if not frames.is_valid_id(frame.key):
            raise MalformedMessage("a request id must be a string, a number or null")
        if "respond-async" in (header(scope, b"prefer") or ""):
            connection.submit(frame, raw)
            await send_whole(send, 202, b"", None)
            return
        timeout = None if frame.method in UNLIMITED else self._timeout
        answer = await answered(connection, frame, raw, receive, timeout)
        if answer is not None:
            await send_whole(send, 200, answer.line, JSON, [(LAST_EVENT, b"%d" % answer.last_event_id)])
            if "repeat" in scope:
                scope["repeat"](partial(self._post_again, connection))

    def _post_again(self, connection: Connection, raw: bytes, respond: Respond) -> Abandon | None:
        frame = plain_request(self._hub, connection, raw)
        if frame is None:
            return None

        def give(answer: Answered | SandboxAgentError) -> None:
            if isinstance(answer, Answered):
                respond(200, _ANSWERED % answer.last_event_id, answer.line)
            else:
                respond_with(respond, problem_response(answer, instance="/v1/rpc"))

        timeout = None if frame.method in UNLIMITED else self._timeout
        return connection.ask(frame, raw, give, timeout=timeout)

    async def _open(self, frame: Frame, raw: bytes, send: Send, user: User) -> None:
        if frame.method != "initialize" or not frame.is_request:
            raise MissingConnection("missing header X-ACP-Connection-Id; only initialize may be sent without it")
        params = read_params(raw)
        agent = agent_in_meta(params)
        if agent is None:
            raise InvalidParams(f'initialize must name an agent in params._meta["{META}"].agent')
        connection, result = await open_connection(self._hub, agent, params, user=user)
        headers: Headers = [(CONNECTION, connection.id.encode()), (LAST_EVENT, b"0")]
        await send_whole(send, 200, frames.result(frame.key, result), JSON, headers)

    async def _get(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_accept(scope, "text/event-stream")
        connection = self._hub.clients.find(_connection_id(scope), user_of(scope))
        reader = connection.stream.read_from(last_event_id(scope))
        await stream_events(reader, scope, receive, send, [(CONNECTION, connection.id.encode())])

    async def _delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._hub.close_connection(_connection_id(scope), user_of(scope))
        await send_whole(send, 204, b"", None)


def _connection_id(scope: Scope) -> str:
    found = header(scope, CONNECTION)
    if found is None:
        raise MissingConnection("missing header X-ACP-Connection-Id")
    return found
