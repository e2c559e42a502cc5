"""How the doors are described in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sandbox_agent.errors import (
    AgentStartFailed,
    AgentTimeout,
    BatchNotSupported,
    Conflict,
    InvalidParams,
    MalformedMessage,
    MissingConnection,
    NotAcceptable,
    NotFound,
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
        "description": "One ACP message as a JSON-RPC 2.0 object: a request, a notification or a response.",
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


class TerminalQuery(msgspec.Struct):
    """`after` is where one who was there before goes on: the number of the last entry that they got."""

    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    resizes: bool = False
    """Be told when the terminal gets another size."""


_STREAM = Content(("text/event-stream",), {"type": "string"})
_SENDING = (202, MalformedMessage, UnknownConnection, NotAcceptable, TooLarge, UnsupportedMediaType, TooMany)
_READING = (InvalidParams, UnknownConnection, NotAcceptable, StreamTaken, TooMany)
_LAST_EVENT = ("Last-Event-ID", "Id of the last event that was received.", False)
_SEND = "Send an ACP message"
_CLOSE = "Close a connection; its sessions continue"


def _connection(header: str, *, is_required: bool = True) -> tuple[str, str, bool]:
    text = "Connection id, from the response to `initialize`."
    return header, text if is_required else f"{text} Omit it for `initialize` only.", is_required


def _closing(name: str, tag: str, status: int, header: str) -> Operation:
    return Operation(name, _CLOSE, tag, status=status, errors=(MissingConnection,), headers=(_connection(header),))


RPC = {
    "POST": Operation(
        "sendMessage",
        _SEND,
        "rpc",
        "A request returns its JSON-RPC response, including errors. Notifications, responses, and requests with "
        "`Prefer: respond-async` return 202, and the answer arrives on the stream. `initialize` is sent without the "
        'connection header, names the agent in `params._meta["sandboxagent.dev"].agent`, and returns '
        "`X-ACP-Connection-Id`. `X-ACP-Last-Event-Id` is the id of the last event before the response.",
        body=_MESSAGE,
        returns=_MESSAGE,
        errors=(*_SENDING, AgentStartFailed, AgentTimeout),
        headers=(
            _connection("X-ACP-Connection-Id", is_required=False),
            ("Prefer", "`respond-async` to get the response on the stream.", False),
        ),
    ),
    "GET": Operation(
        "readStream",
        "Stream a connection's events (server-sent events)",
        "rpc",
        "`event: message`, `id: N`, `data:` one JSON-RPC object. One reader at a time. With `Last-Event-ID: N` the "
        "stream starts after N and replaces another reader; without it, the stream continues where the last reader "
        "stopped.",
        returns=_STREAM,
        errors=_READING,
        headers=(_connection("X-ACP-Connection-Id"), _LAST_EVENT),
    ),
    "DELETE": _closing("closeConnection", "rpc", 204, "X-ACP-Connection-Id"),
}

_ACP_SESSION = ("Acp-Session-Id", "The session that the message or stream belongs to.", False)
ACP = {
    "POST": Operation(
        "sendAcpMessage",
        _SEND,
        "acp",
        "ACP's own HTTP transport. `initialize` returns its response in the body, with `Acp-Connection-Id`; the agent "
        'is taken from `?agent=`, `params._meta["sandboxagent.dev"].agent` or the setting `default_agent`. Everything '
        "else returns 202, and the answer arrives on a stream. A WebSocket at this path carries both directions.",
        body=_MESSAGE,
        returns=_MESSAGE,
        errors=(*_SENDING, BatchNotSupported, AgentStartFailed),
        headers=(_connection("Acp-Connection-Id", is_required=False), _ACP_SESSION),
    ),
    "GET": Operation(
        "readAcpStream",
        "Stream the events of a connection or of one session (server-sent events)",
        "acp",
        returns=_STREAM,
        errors=_READING,
        headers=(_connection("Acp-Connection-Id"), _ACP_SESSION, _LAST_EVENT),
    ),
    "DELETE": _closing("closeAcpConnection", "acp", 202, "Acp-Connection-Id"),
}
COMPAT_LIST = {
    "GET": Operation(
        "listServers",
        "List connections by server id",
        "compat",
        returns=Content(("application/json",), {"type": "object"}),
    )
}
COMPAT = {
    "POST": Operation(
        "sendToServer",
        _SEND,
        "compat",
        "For clients that choose the id of their connection. The first message names its agent in `?agent=`. Once the "
        "server id is open, errors are JSON-RPC errors with status 200.",
        body=_MESSAGE,
        returns=_MESSAGE,
        errors=(202, MalformedMessage, NotAcceptable, Conflict, TooLarge, UnsupportedMediaType, TooMany),
    ),
    "GET": Operation(
        "readServerStream",
        "Stream the events of a server id from the first one (server-sent events)",
        "compat",
        returns=_STREAM,
        errors=(InvalidParams, NotAcceptable, TooMany),
        headers=(_LAST_EVENT,),
    ),
    "DELETE": Operation("closeServer", _CLOSE, "compat", status=204),
}
TERMINAL = {
    "GET": Operation(
        "openProcessTerminal",
        "Open a process's terminal (WebSocket)",
        "processes",
        "An upgrade; `access_token` or `ticket` in the query, or `bearer.TOKEN` as a subprotocol, for clients that "
        "cannot send headers. The server sends output as binary frames, one for each entry of the log after the number "
        'in `{"type":"ready","processId","after"}`, then `{"type":"exit","exitCode","signal"}`; '
        '`{"type":"error","message"}` if something is wrong, with `cut` if output is not kept any more. The client '
        'sends `{"type":"input","data","encoding"}` (`utf8` or `base64`), `{"type":"resize","cols","rows"}` and '
        '`{"type":"close"}`. With `after=N` it resumes after entry N, otherwise it starts with the latest output. Any '
        "number of clients can be attached; the terminal has the size of the one who typed last.",
        query=TerminalQuery,
        errors=(InvalidParams, NotFound, Conflict, TooMany),
        returns=Content(("application/octet-stream",), {"type": "string", "format": "binary"}),
    )
}
