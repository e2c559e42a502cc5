"""All routes on one screen."""

from __future__ import annotations

import hmac

from sandbox_agent.errors import NotFound, SandboxAgentError, Unauthorized
from sandbox_agent.http.doors.rpc import RpcDoor
from sandbox_agent.http.problems import JSON, Receive, Scope, Send, send_problem, send_whole
from sandbox_agent.hub.hub import Hub


class MethodNotAllowed(SandboxAgentError):
    status = 405
    title = "Method not allowed"


class App:
    def __init__(self, hub: Hub, *, token: str | None, request_timeout: float, body_limit: int) -> None:
        self._token = token
        self._rpc = RpcDoor(hub, request_timeout=request_timeout, body_limit=body_limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if self._token is not None and not _is_authorized(scope, self._token):
            await send_problem(send, scope, Unauthorized("a valid bearer token is needed"))
        elif scope["path"] == "/v1/rpc":
            if scope["method"] not in {"POST", "GET", "DELETE"}:
                error = MethodNotAllowed(f"{scope['method']} is not served here")
                await send_problem(send, scope, error, headers=[(b"allow", b"POST, GET, DELETE")])
            else:
                await self._rpc(scope, receive, send)
        elif scope["path"] == "/v1/health":
            await send_whole(send, 200, b'{"status":"ok"}', JSON)
        else:
            await send_problem(send, scope, NotFound(f"nothing is served at {scope['path']}"))


def _is_authorized(scope: Scope, token: str) -> bool:
    given = [value for key, value in scope["headers"] if key == b"authorization"]
    return len(given) == 1 and hmac.compare_digest(given[0], b"Bearer " + token.encode())
