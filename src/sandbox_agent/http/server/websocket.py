"""The WebSocket protocol with bounds: on pongs for a peer that does not read, on a handshake that fails, and on what is
kept of one that has gone.

It leans on uvicorn's protocol on top of `websockets`, of which it overrides five methods."""

from __future__ import annotations

import asyncio
from functools import cache, partial
from typing import Any, ClassVar, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from sandbox_agent.http.server.wire import Sockets


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """To be used as `bounded_websocket` gives it, with the same `sockets` that the HTTP protocol has."""

    sockets: ClassVar[Sockets]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._app, self.app = self.app, self._serve
        self._pong = b""
        """The answer to the newest ping, while the peer does not read."""
        self._gone = asyncio.Event()

    async def run_asgi(self) -> None:
        self.scope["gone"] = self._gone  # type: ignore[typeddict-unknown-key]
        if self.sockets.is_stranger(self.transport):
            self.scope["admitted"] = partial(self.sockets.forget, self.transport)  # type: ignore[typeddict-unknown-key]
        await super().run_asgi()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # refused with a response of its own: else uvicorn takes it for an error

    def connection_lost(self, exc: Exception | None) -> None:
        self.sockets.forget(self.transport)
        while not self.queue.empty():
            self.queue.get_nowait()  # nobody is there for whom it could be done
        super().connection_lost(exc)
        self._gone.set()

    def shutdown(self) -> None:
        if self.handshake_initiated:
            super().shutdown()
        else:
            self.transport.abort()

    def handle_ping(self) -> None:
        """One pong for many pings is enough (RFC 6455, 5.5.3) for a peer that does not take them."""
        output = [piece for piece in self.conn.data_to_send() if piece]
        if self.writable.is_set():
            self.transport.write(b"".join(output))
        elif output:
            self._pong = output[-1]

    def resume_writing(self) -> None:
        pong, self._pong = self._pong, b""
        super().resume_writing()
        if pong and not self.close_sent and not self.transport.is_closing():
            self.transport.write(pong)


@cache
def bounded_websocket(sockets: Sockets) -> type[BoundedWebSocket]:
    return cast("type[BoundedWebSocket]", type("BoundedWebSocket", (BoundedWebSocket,), {"sockets": sockets}))
