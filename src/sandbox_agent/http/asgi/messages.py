"""The words of ASGI, and a whole response as one value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

Abandon = Callable[[], None]
"""The peer has gone: nobody waits for the answer any more."""
Respond = Callable[[int, bytes, bytes], None]
"""Status, further header lines each ended by CRLF, body. To be called once, perhaps before `Repeat` returns."""
Repeat = Callable[[bytes, Respond], Abandon | None]
"""Take the body of a request that repeats; None leaves it to the plain path. See `http.server.direct`."""
Push = Callable[[bytes], bool]
"""Write a piece of the body that is being sent, at once. False when it has to be sent as usual, since it may wait."""

JSON = b"application/json"
PROBLEM = b"application/problem+json"
HTML = b"text/html; charset=utf-8"
NO_STORE = (b"cache-control", b"no-store")


class Response(msgspec.Struct, frozen=True):
    """Content-Length and Content-Type come from the body; `headers` are the further ones."""

    status: int
    body: bytes = b""
    content_type: bytes | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def header_lines(self) -> bytes:
        """All headers but Content-Length, each ended by CRLF, for those who write to the socket themselves."""
        typed = () if self.content_type is None else ((b"content-type", self.content_type),)
        return b"".join(b"%b: %b\r\n" % header for header in (*self.headers, *typed))

    def adding(self, *headers: tuple[bytes, bytes]) -> Response:
        return msgspec.structs.replace(self, headers=(*self.headers, *headers))


def json_response(value: Any, *, status: int = 200) -> Response:
    """`value` as JSON, which no cache keeps."""
    return Response(status, msgspec.json.encode(value), JSON, (NO_STORE,))


async def send_response(response: Response, scope: Scope, send: Send) -> None:
    """Send it. A WebSocket is refused with it before the upgrade."""
    if scope["type"] == "http":
        await send_whole(send, response.status, response.body, response.content_type, list(response.headers))
        return
    headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
    if response.content_type is not None:
        headers.append((b"content-type", response.content_type))
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


async def send_whole(
    send: Send, status: int, body: bytes, content_type: bytes | None, headers: Headers | None = None
) -> None:
    """One response in one piece."""
    every = [*(headers or []), (b"content-length", b"%d" % len(body))]
    if content_type is not None:
        every.append((b"content-type", content_type))
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": body})
