"""The one edge: whatever is raised while a request is served becomes, here, what its sender is told.

An error of the tree is told as it is. Anything else is a bug: it is logged with its traceback, and the sender learns
no more than that it happened. The form is `application/problem+json`, with Retry-After where it says "not now"; a
WebSocket that is open is closed with a code; and a client that waits for a JSON-RPC answer in a 200 gets one, if its
door has put a `Failure` into `scope["failure"]`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from sandbox_agent.errors import ClientGone, SandboxAgentError
from sandbox_agent.http.asgi.messages import PROBLEM, Response, Scope, Send, send_response
from sandbox_agent.http.asgi.websocket import close, close_code

T = TypeVar("T")
Failure = Callable[[SandboxAgentError], Response]
"""How a door wants its failures told, where that is not as a problem."""

_log = logging.getLogger(__name__)
_RETRY_AFTER = (b"retry-after", b"1")
_NOT_NOW = frozenset({429, 503})


async def answer_failure(error: Exception, scope: Scope, send: Send, *, has_begun: bool) -> None:
    """Tell whoever sent the request of `scope` that it failed. `has_begun` says that a status or an accept has left."""
    is_websocket = scope["type"] == "websocket"
    if isinstance(error, ClientGone) or (is_websocket and has_begun and isinstance(error, OSError)):
        return  # nobody is left to be told; in ASGI a WebSocket's send raises OSError then
    known = known_error(error, scope["path"])
    if has_begun and is_websocket:
        await close(send, close_code(known), known.detail)
    elif has_begun:  # the response ends early, which the peer sees by its length or its missing last chunk
        _log.warning("response cut short path=%s error=%s", scope["path"], known)
    else:
        failure: Failure | None = scope.get("failure")
        response = problem_response(known, instance=scope["path"]) if failure is None else failure(known)
        await send_response(response, scope, send)


async def outcome(work: Awaitable[T], path: str) -> T | SandboxAgentError:
    """What comes of `work`, or the error to tell: for answers that are one event or one frame of many."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the edge; a bug is logged with its traceback
        return known_error(error, path)


def known_error(error: Exception, path: str) -> SandboxAgentError:
    """`error` if it may be told; else it is logged, and what is told instead."""
    if isinstance(error, SandboxAgentError):
        return error
    _log.error("request failed path=%s", path, exc_info=error)
    return SandboxAgentError("internal error; see the server log")


def problem_response(error: SandboxAgentError, *, status: int | None = None, instance: str | None = None) -> Response:
    known = status or error.status
    headers = (_RETRY_AFTER,) if known in _NOT_NOW else ()
    return Response(known, problem_body(error, status=known, instance=instance), PROBLEM, headers)


def problem_body(error: SandboxAgentError, *, status: int | None = None, instance: str | None = None) -> bytes:
    body: dict[str, Any] = {
        "type": f"urn:sandbox-agent:error:{error.kind}",
        "title": error.title,
        "status": status or error.status,
        "detail": error.detail,
        "retryable": error.retryable,
    }
    if instance is not None:
        body["instance"] = instance
    return msgspec.json.encode({**error.data, **body})
