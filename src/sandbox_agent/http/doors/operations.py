"""How the doors are described in the OpenAPI document."""

from __future__ import annotations

from sandbox_agent.errors import (
    AgentStartFailed,
    AgentTimeout,
    BatchNotSupported,
    Conflict,
    InvalidParams,
    MalformedMessage,
    MissingConnection,
    NotAcceptable,
    StreamTaken,
    TooLarge,
    TooMany,
    UnknownConnection,
    UnsupportedMediaType,
)
from sandbox_agent.http.asgi.routes import Content, Operation

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
_STREAM = Content(("text/event-stream",), {"type": "string"})
_SENDING = (202, MalformedMessage, UnknownConnection, NotAcceptable, TooLarge, UnsupportedMediaType, TooMany)
_READING = (InvalidParams, UnknownConnection, NotAcceptable, StreamTaken, TooMany)
_NEEDS_CONNECTION = ("X-ACP-Connection-Id", "The connection, as the answer to `initialize` named it.", True)
RPC = {
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
        errors=(*_SENDING, AgentStartFailed, AgentTimeout),
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
        returns=_STREAM,
        errors=_READING,
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

_ACP_CONNECTION = ("Acp-Connection-Id", "The connection, as the answer to `initialize` named it.", True)
_ACP_SESSION = ("Acp-Session-Id", "The session that the message or stream belongs to.", False)
ACP = {
    "POST": Operation(
        name="sendAcpMessage",
        summary="Send one ACP message over the upstream transport",
        tag="acp",
        description="`initialize` is answered in the body, with `Acp-Connection-Id`; its agent comes from `?agent=`, "
        'from `params._meta["sandboxagent.dev"].agent` or is the server\'s default. Everything else gets 202, and its '
        "answer comes on a stream. A WebSocket on this path carries both directions.",
        body=_MESSAGE,
        returns=_MESSAGE,
        errors=(*_SENDING, BatchNotSupported, AgentStartFailed),
        headers=(("Acp-Connection-Id", "The connection; left out for `initialize` only.", False), _ACP_SESSION),
    ),
    "GET": Operation(
        name="readAcpStream",
        summary="The connection's events, or those of one session",
        tag="acp",
        returns=_STREAM,
        errors=_READING,
        headers=(_ACP_CONNECTION, _ACP_SESSION, ("Last-Event-ID", "The last event that was seen.", False)),
    ),
    "DELETE": Operation(
        name="closeAcpConnection",
        summary="Close the connection; its sessions go on",
        tag="acp",
        status=202,
        errors=(MissingConnection,),
        headers=(_ACP_CONNECTION,),
    ),
}
COMPAT_LIST = {
    "GET": Operation(
        name="listServers",
        summary="The connections that clients have named themselves",
        tag="compat",
        returns=Content(("application/json",), {"type": "object"}),
        errors=(),
    )
}
COMPAT = {
    "POST": Operation(
        name="sendToServer",
        summary="Send one ACP message; the first names its agent in `?agent=`",
        tag="compat",
        description="Agent failures are JSON-RPC errors in a 200, as the clients of this door expect.",
        body=_MESSAGE,
        returns=_MESSAGE,
        errors=(202, MalformedMessage, NotAcceptable, Conflict, TooLarge, UnsupportedMediaType, TooMany),
    ),
    "GET": Operation(
        name="readServerStream",
        summary="The events of one server id, from the first on",
        tag="compat",
        returns=_STREAM,
        errors=(InvalidParams, NotAcceptable, TooMany),
        headers=(("Last-Event-ID", "The last event that was seen.", False),),
    ),
    "DELETE": Operation(
        name="closeServer", summary="Close the connection; its sessions go on", tag="compat", status=204, errors=()
    ),
}
