"""The door `/v1/rpc`: POST a message, GET the stream of events, DELETE the connection."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.methods import UNLIMITED
from sandbox_agent.errors import (
    AgentStartFailed,
    AgentTimeout,
    InvalidParams,
    MalformedMessage,
    MissingConnection,
    NotAcceptable,
    SandboxAgentError,
    StreamTaken,
    TooLarge,
    TooMany,
    UnknownAgent,
    UnknownConnection,
    UnsupportedMediaType,
)
from sandbox_agent.http.problems import JSON, Headers, Receive, Scope, Send, send_problem, send_whole
from sandbox_agent.http.requests import ClientGone, header, read_body, require_accept, require_json
from sandbox_agent.http.routes import Content, Operation
from sandbox_agent.http.sse import stream_events
from sandbox_agent.hub.connection import Answer, Connection
from sandbox_agent.hub.hub import Hub

CONNECTION = b"x-acp-connection-id"
LAST_EVENT = b"x-acp-last-event-id"
METHODS = ("POST", "GET", "DELETE")
_MESSAGE = Content(
    ("application/json",),
    {
        "type": "object",
        "description": "One JSON-RPC 2.0 object: a request, a notification or an answer, as ACP has it.",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "number", "null"]},
            "method": {"type": "string"},
            "params": {},
            "result": {},
            "error": {"type": "object"},
        },
        "required": ["jsonrpc"],
    },
)
_NEEDS_CONNECTION = ("X-ACP-Connection-Id", "The connection, as the answer to `initialize` named it.", True)
OPERATIONS = {
    "POST": Operation(
        name="sendMessage",
        summary="Send one ACP message",
        tag="rpc",
        description="A request is answered with its JSON-RPC answer, also when the method failed. A notification, an "
        "answer, and a request with `Prefer: respond-async` get 202; what follows comes on the stream. `initialize` "
        'comes without the connection header, names its agent in `params._meta["sandboxagent.dev"].agent`, and its '
        "answer has `X-ACP-Connection-Id`. `X-ACP-Last-Event-Id` says which event came before the answer.",
        body=_MESSAGE,
        returns=_MESSAGE,
        errors=(
            202,
            MalformedMessage,
            UnknownConnection,
            NotAcceptable,
            TooLarge,
            UnsupportedMediaType,
            TooMany,
            AgentStartFailed,
            AgentTimeout,
        ),
        headers=(
            ("X-ACP-Connection-Id", "The connection; left out for `initialize` only.", False),
            ("Prefer", "`respond-async` for the answer on the stream.", False),
        ),
    ),
    "GET": Operation(
        name="readStream",
        summary="The connection's events as server-sent events",
        tag="rpc",
        description="`event: message`, `id: N`, `data:` one JSON-RPC object. One reader at a time. With "
        "`Last-Event-ID: N` the stream starts after N and is taken over from another reader; without it, it goes on "
        "where the last reader stopped.",
        returns=Content(("text/event-stream",), {"type": "string"}),
        errors=(InvalidParams, UnknownConnection, NotAcceptable, StreamTaken, TooMany),
        headers=(_NEEDS_CONNECTION, ("Last-Event-ID", "The last event that was seen.", False)),
    ),
    "DELETE": Operation(
        name="closeConnection",
        summary="Close the connection; its sessions go on",
        tag="rpc",
        status=204,
        errors=(MissingConnection,),
        headers=(_NEEDS_CONNECTION,),
    ),
}


class RpcDoor:
    """Raw ASGI: this is the hot path."""

    def __init__(self, hub: Hub, *, request_timeout: float, body_limit: int) -> None:
        self._hub = hub
        self._timeout = request_timeout
        self._body_limit = body_limit
        self._verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._verbs[scope["method"]](scope, receive, send)
        except UnknownAgent as error:
            await send_problem(send, scope, error, status=400)
        except SandboxAgentError as error:
            await send_problem(send, scope, error)
        except ClientGone:
            pass

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_json(scope)
        require_accept(scope, "application/json")
        raw = await read_body(scope, receive, self._body_limit)
        frame = frames.parse(raw)
        connection_id = header(scope, CONNECTION)
        if connection_id is None:
            await self._open(frame, raw, send)
            return
        connection = self._hub.connection(connection_id)
        await self._hub.room(connection)
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
        answer = await _answered(connection, frame, raw, receive, timeout)
        if answer is not None:
            await send_whole(send, 200, answer.line, JSON, [(LAST_EVENT, b"%d" % answer.last_event_id)])

    async def _open(self, frame: Frame, raw: bytes, send: Send) -> None:
        if frame.method != "initialize" or not frame.is_request:
            raise MissingConnection("header X-ACP-Connection-Id is missing; only initialize may come without it")
        params = _params(raw)
        connection, result = await self._hub.open_connection(_agent_of(params), params)
        headers: Headers = [(CONNECTION, connection.id.encode()), (LAST_EVENT, b"0")]
        await send_whole(send, 200, frames.result(frame.key, result), JSON, headers)

    async def _get(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_accept(scope, "text/event-stream")
        connection = self._hub.connection(_connection_id(scope))
        reader = connection.stream.read_from(_last_event_id(scope))
        await stream_events(reader, receive, send, [(CONNECTION, connection.id.encode())])

    async def _delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._hub.close_connection(_connection_id(scope))
        await send_whole(send, 204, b"", None)


async def _answered(
    connection: Connection, frame: Frame, raw: bytes, receive: Receive, timeout: float | None
) -> Answer | None:
    """The answer, or None when the peer left before it came: then it is on the stream."""
    waiting = asyncio.create_task(connection.request(frame, raw, timeout=timeout))
    leaving = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return waiting.result()
        return None
    finally:
        leaving.cancel()
        if not waiting.done():
            waiting.cancel()


def _connection_id(scope: Scope) -> str:
    found = header(scope, CONNECTION)
    if found is None:
        raise MissingConnection("header X-ACP-Connection-Id is missing")
    return found


def _last_event_id(scope: Scope) -> int | None:
    value = header(scope, b"last-event-id")
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 18:
        raise InvalidParams(f"Last-Event-ID must be a whole number, not {value!r}")
    return int(value)


def _params(raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(frames.params_of(raw), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidParams(f"params of initialize: {error}") from None


def _agent_of(params: dict[str, Any]) -> AgentId:
    meta = params.get("_meta")
    ours = meta.get(META) if isinstance(meta, dict) else None
    agent = ours.get("agent") if isinstance(ours, dict) else None
    if not isinstance(agent, str) or not agent:
        raise InvalidParams(f'initialize must name an agent in params._meta["{META}"].agent')
    return AgentId(agent)
