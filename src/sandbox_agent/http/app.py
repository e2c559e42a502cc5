"""All routes on one screen."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from sandbox_agent.errors import NotFound, SandboxAgentError, Unauthorized
from sandbox_agent.http.doors.acp import AcpDoor
from sandbox_agent.http.doors.peer import PeerDoor
from sandbox_agent.http.doors.rpc import RpcDoor
from sandbox_agent.http.problems import JSON, Receive, Scope, Send, send_problem, send_whole
from sandbox_agent.http.websocket import Close, offered_token, refuse
from sandbox_agent.hub.hub import Hub

Door = Callable[[Scope, Receive, Send], Awaitable[None]]


class MethodNotAllowed(SandboxAgentError):
    status = 405
    title = "Method not allowed"


class App:
    def __init__(
        self,
        hub: Hub,
        *,
        token: str | None,
        request_timeout: float,
        body_limit: int,
        default_agent: str | None = None,
    ) -> None:
        self._token = token
        self._rpc = RpcDoor(hub, request_timeout=request_timeout, body_limit=body_limit)
        self._acp = AcpDoor(hub, default_agent=default_agent, body_limit=body_limit)
        self._peer = PeerDoor(hub, request_timeout=request_timeout, body_limit=body_limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._upgrade(scope, receive, send)
        elif scope["type"] != "http":
            return
        elif self._token is not None and not _is_authorized(scope, self._token):
            await send_problem(send, scope, Unauthorized("a valid bearer token is needed"))
        elif scope["path"] == "/v1/rpc":
            await _only("POST, GET, DELETE", self._rpc, scope, receive, send)
        elif scope["path"] == "/acp":
            await _only("POST, GET, DELETE", self._acp, scope, receive, send)
        elif scope["path"] == "/v1/acp":
            await _only("GET", self._peer, scope, receive, send)
        elif scope["path"].startswith("/v1/acp/"):
            await _only("POST, GET, DELETE", self._peer, scope, receive, send)
        elif scope["path"] == "/v1/health":
            await send_whole(send, 200, b'{"status":"ok"}', JSON)
        else:
            await send_problem(send, scope, NotFound(f"nothing is served at {scope['path']}"))

    async def _upgrade(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._token is not None and not _may_upgrade(scope, self._token):
            await receive()
            await refuse(send, scope, Close.UNAUTHORIZED, "a valid token is needed")
        elif scope["path"] == "/acp":
            await self._acp(scope, receive, send)
        else:
            await receive()
            await refuse(send, scope, Close.UNKNOWN_CONNECTION, f"nothing is served at {scope['path']}")


async def _only(methods: str, door: Door, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["method"] in methods.split(", "):
        await door(scope, receive, send)
    else:
        error = MethodNotAllowed(f"{scope['method']} is not served here")
        await send_problem(send, scope, error, headers=[(b"allow", methods.encode())])


def _is_authorized(scope: Scope, token: str) -> bool:
    given = [value for key, value in scope["headers"] if key == b"authorization"]
    return len(given) == 1 and hmac.compare_digest(given[0], b"Bearer " + token.encode())


def _may_upgrade(scope: Scope, token: str) -> bool:
    given = offered_token(scope)
    return _is_authorized(scope, token) or (given is not None and hmac.compare_digest(given.encode(), token.encode()))
