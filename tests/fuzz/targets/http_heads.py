"""Whatever is sent on a socket, the app gets the same requests with the shortcut past ASGI as without it.

Nor does it matter how the bytes are cut, and nothing that a peer sends is an error of ours. Only where a socket is
closed for nonsense may requests before the nonsense be dropped with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from fuzz.pieces import pieces
from sandbox_agent.http.server.direct import DirectProtocol
from sandbox_agent.http.server.wire import BoundedProtocol, Sockets, bounded

Seen = list[tuple[str, bytes, bytes]]
"""Method, path and body of each request."""

_HEAD = b"POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nok"
"""Sent twice before the input, so that the shortcut knows a head that the input may repeat."""


def check(data: bytes) -> None:
    apart = [_HEAD, _HEAD, *pieces(data)]
    kinds = (BoundedProtocol, DirectProtocol)
    runs = [asyncio.run(_serve(kind, arriving)) for kind in kinds for arriving in ([b"".join(apart)], apart)]
    longest = max((seen for seen, _ in runs), key=len)
    for seen, is_closed in runs:
        assert seen == longest[: len(seen)]
        assert is_closed or len(seen) == len(longest)


async def _serve(kind: type[BoundedProtocol], arriving: list[bytes]) -> tuple[Seen, bool]:
    loop = asyncio.get_running_loop()
    problems: list[Any] = []
    loop.set_exception_handler(lambda loop, context: problems.append(context))
    seen: Seen = []
    config = Config(_app(seen), http="httptools", ws="none", log_config=None, access_log=False, lifespan="off")
    config.load()
    state = ServerState()
    protocol = bounded(Sockets(10), kind)(config=config, server_state=state, app_state={})
    transport = _Transport()
    protocol.connection_made(cast("asyncio.Transport", transport))
    for piece in arriving:
        if transport.is_over:
            break
        if piece:
            protocol.data_received(piece)
        await _settle(state)
    is_closed = transport.is_over
    protocol.connection_lost(None)
    await _settle(state)
    assert not problems, problems
    return seen, is_closed


async def _settle(state: ServerState) -> None:
    """Some turns of the loop: a request that is whole is answered by then."""
    for _ in range(8 + 4 * len(state.tasks)):
        await asyncio.sleep(0)


def _app(seen: Seen) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, has_more = b"", True
        while has_more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message["body"]
            has_more = message["more_body"]
        seen.append((scope["method"], scope["raw_path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        if "repeat" in scope:
            scope["repeat"](_repeat(seen, scope["method"], scope["raw_path"]))

    return app


def _repeat(seen: Seen, method: str, path: bytes) -> Callable[..., Callable[[], None]]:
    def repeat(body: bytes, respond: Callable[[int, bytes, bytes], None]) -> Callable[[], None]:
        seen.append((method, path, body))
        respond(200, b"content-length: 0\r\n", b"")
        return lambda: None

    return repeat


class _Transport:
    """Takes everything at once."""

    def __init__(self) -> None:
        self.is_over = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def write(self, content: bytes) -> None:
        pass

    def close(self) -> None:
        self.is_over = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_over

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_protocol(self, protocol: Any) -> None:
        self.is_over = True
