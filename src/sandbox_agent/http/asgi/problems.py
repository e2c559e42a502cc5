"""Errors as `application/problem+json`, turned into bytes in this one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from sandbox_agent.errors import SandboxAgentError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PROBLEM = b"application/problem+json"
JSON = b"application/json"
_RETRY_AFTER = (b"retry-after", b"1")


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


def retry_headers(status: int) -> Headers:
    """When to come back, for the answers that say "not now"."""
    return [_RETRY_AFTER] if status in {429, 503} else []


async def send_problem(
    send: Send, scope: Scope, error: SandboxAgentError, *, status: int | None = None, headers: Headers | None = None
) -> None:
    known = status or error.status
    body = problem_body(error, status=known, instance=scope["path"])
    await send_whole(send, known, body, PROBLEM, [*retry_headers(known), *(headers or [])])


async def send_whole(
    send: Send, status: int, body: bytes, content_type: bytes | None, headers: Headers | None = None
) -> None:
    """One response in one piece."""
    every = [*(headers or []), (b"content-length", b"%d" % len(body))]
    if content_type is not None:
        every.append((b"content-type", content_type))
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": body})
