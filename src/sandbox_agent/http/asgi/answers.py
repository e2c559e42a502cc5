"""Ready-made answers: one value, sent in one piece to a request or in place of a WebSocket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.http.asgi.problems import (
    JSON,
    PROBLEM,
    Headers,
    Scope,
    Send,
    problem_body,
    retry_headers,
    send_whole,
)

NO_STORE = (b"cache-control", b"no-store")
HTML = b"text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    content_type: bytes | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


def json_answer(value: Any, *, status: int = 200, headers: Headers | None = None) -> Answer:
    """`value` as JSON, which no cache keeps."""
    return Answer(status, msgspec.json.encode(value), JSON, (NO_STORE, *(headers or ())))


def problem_answer(error: SandboxAgentError, *, status: int | None = None, instance: str | None = None) -> Answer:
    known = status or error.status
    return Answer(known, problem_body(error, status=known, instance=instance), PROBLEM, tuple(retry_headers(known)))


async def give(answer: Answer, scope: Scope, send: Send) -> None:
    """Send it. A WebSocket is refused with it before the upgrade."""
    if scope["type"] == "http":
        await send_whole(send, answer.status, answer.body, answer.content_type, list(answer.headers))
        return
    headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body))]
    if answer.content_type is not None:
        headers.append((b"content-type", answer.content_type))
    await send({"type": "websocket.http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": answer.body})
