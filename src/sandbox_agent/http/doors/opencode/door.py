"""The door `/opencode`: OpenCode's own HTTP protocol in front of every agent.

What serves it is imported with the first request, so that a server that nobody uses so does not pay for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from sandbox_agent.agents import Catalog
from sandbox_agent.core.users import Right, User
from sandbox_agent.files import FileService
from sandbox_agent.http.asgi.messages import JSON, NO_STORE, Asgi, Receive, Response, Scope, Send
from sandbox_agent.http.asgi.routes import Door, Password
from sandbox_agent.hub.hub import Hub

if TYPE_CHECKING:
    from sandbox_agent.http.doors.opencode.app import OpenCodeApp

PREFIX = "/opencode"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
AGENTS = "/agents"
"""Below it, the same for clients that prefer the agent that follows: `/opencode/agents/claude/session`."""
STREAMS = ("/event", "/global/event")
SOCKETS = ("/pty/{ptyID}/connect", "/api/pty/{ptyID}/connect")
_CHALLENGE = (b"www-authenticate", b'Basic realm="Secure Area"')
_REFUSED = b'{"_tag":"UnauthorizedError","message":"Authentication required"}'
PASSWORD = Password("opencode", "auth_token", Response(401, _REFUSED, JSON, (_CHALLENGE, NO_STORE)))
"""As OpenCode's own server: its clients send the token as the password of the user `opencode`."""


AskOthers = Callable[[Scope, str, Any], Awaitable[dict[str, Any]]]
"""What each other node has for a GET of a path, as JSON of a type, for who sent a request. One that does not answer in
time is left out."""


class OpenCodeParts(msgspec.Struct, frozen=True):
    """What the door is made of."""

    hub: Hub
    catalog: Catalog
    files: FileService
    body_limit: int
    request_timeout: float
    default_agent: str | None
    stream_bytes: int
    """What may wait for one reader of events; one that is slower is disconnected, and comes back."""
    sessions_held: int
    """Sessions whose open turn is held in memory for those who follow."""
    issue_ticket: Callable[[User], str]
    """A name with which one may come in once, without the token."""
    ticket_seconds: float
    forward: Callable[[str, Scope, Receive, Send], Awaitable[bool]]
    """Has another node answer a request about its session; False where that cannot be."""
    ask_others: AskOthers


class OpenCodeDoor:
    def __init__(self, parts: OpenCodeParts) -> None:
        self._parts = parts
        self._app: OpenCodeApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            from sandbox_agent.http.doors.opencode.app import OpenCodeApp  # noqa: PLC0415 - see above

            self._app = OpenCodeApp(self._parts)
        await self._app(scope, receive, send)


class OpenCodeAtRoot:
    """The whole app, with one port on which this door is at the root: OpenCode's web UI drops the path of an address.

    Nothing else is served there."""

    def __init__(self, app: Asgi, port: int) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listener = scope.get("server")
        if listener is not None and listener[1] == self._port:
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            scope["path"], scope["raw_path"] = PREFIX + scope["path"], PREFIX.encode() + raw
        await self._app(scope, receive, send)


def opencode_routes(parts: OpenCodeParts) -> list[Door]:
    """Its streams and WebSockets have places of their own, since they are counted as subscribers. What each route needs
    beyond reading, its table says."""
    door = OpenCodeDoor(parts)
    places = [PREFIX, f"{PREFIX}{AGENTS}/{{agent}}"]
    door_at = partial(Door, methods=METHODS, app=door, password=PASSWORD, needs=Right.READ)
    streams = [door_at(place + path) for place in places for path in STREAMS]
    sockets = [
        door_at(place + path, serves_websocket=True, streams=frozenset(), needs=Right.PROMPT)
        for place in places
        for path in SOCKETS
    ]
    rest = door_at(PREFIX + "/{rest:path}", streams=frozenset())
    return [*streams, *sockets, rest]
