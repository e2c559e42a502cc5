"""The HTTP/1.1 protocol with bounds: on a request's head, on sockets, and on how long one may stay a stranger.

It leans on uvicorn's httptools protocol, of which it overrides seven methods; the app stays plain ASGI."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, ClassVar, cast

from sandbox_agent.errors import ClientError, HeadTooLarge, Overloaded, SandboxAgentError
from sandbox_agent.http.asgi.problems import problem_response
from sandbox_agent.http.server.uvicorn_parts import STATUS_LINE, HttpToolsProtocol, ServerState

HEAD_LIMIT = 64 << 10
HEAD_SECONDS = 20.0
STRANGER_SECONDS = 20.0
_SWEEP_SECONDS = 5.0


class Sockets:
    """The open sockets of a server, and who of them is a stranger: nothing that it sent has passed the gate yet.

    Whatever a stranger does or leaves undone, it is closed after `patience` seconds. When all sockets are taken, the
    oldest stranger makes room for the newcomer; who has passed the gate keeps its socket."""

    def __init__(self, limit: int, *, patience: float = STRANGER_SECONDS) -> None:
        self.limit = limit
        self._patience = patience
        self._strangers: dict[asyncio.BaseTransport, float] = {}

    def add(self, transport: asyncio.BaseTransport, now: float) -> None:
        self._strangers[transport] = now

    def is_stranger(self, transport: asyncio.BaseTransport) -> bool:
        return transport in self._strangers

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """It is a stranger no longer: it has passed the gate, or is gone."""
        self._strangers.pop(transport, None)

    def make_room(self) -> bool:
        """Whether there was a stranger that could be closed."""
        oldest = next(iter(self._strangers), None)
        if oldest is None:
            return False
        self._end(oldest)
        return True

    def close_overdue(self, now: float) -> None:
        for transport, since in list(self._strangers.items()):
            if now - since > self._patience:
                self._end(transport)

    def _end(self, transport: asyncio.BaseTransport) -> None:
        self.forget(transport)
        cast("asyncio.Transport", transport).abort()  # to close would wait for a peer that does not read


class BoundedProtocol(HttpToolsProtocol):
    """To be used as `bounded` gives it, so that all sockets of a server share `sockets`."""

    sockets: ClassVar[Sockets]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.head_bytes = 0
        self.head_since: float | None = None
        self._arriving = 0
        """Bytes of the piece that is being parsed."""
        self._refusal: SandboxAgentError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.head_since = self.loop.time()
        if len(self.connections) > self.sockets.limit and not self.sockets.make_room():
            self._refuse(Overloaded(f"socket limit ({self.sockets.limit}) reached; try again later"))
        else:
            self.sockets.add(transport, self.head_since)

    def connection_lost(self, exc: Exception | None) -> None:
        self.sockets.forget(self.transport)
        super().connection_lost(exc)
        self.cycle = self.scope = None  # type: ignore[assignment]  # both refer to us: a circle that would stay

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._arriving = len(data)
        super().data_received(data)
        if self.head_since is not None:
            self.head_bytes += len(data)
            if self.head_bytes > HEAD_LIMIT:
                self._refuse(_head_too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head_bytes = 0
        self.head_since = self.loop.time()

    def on_headers_complete(self) -> None:
        self.head_since = None
        if self.head_bytes + self._arriving > HEAD_LIMIT and self._head_size() > HEAD_LIMIT:
            self._stop_parsing(_head_too_large())
        if self.parser.should_upgrade() and self._should_upgrade() and self._announces_body():
            self._stop_parsing(ClientError("a WebSocket upgrade must not have a body"))
        if self.sockets.is_stranger(self.transport):
            self.scope["admitted"] = partial(self.sockets.forget, self.transport)  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        super().handle_websocket_upgrade()
        if not getattr(self.transport.get_protocol(), "handshake_initiated", True):
            self._refuse(ClientError("invalid WebSocket upgrade"))

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal or ClientError(msg))

    def is_stalled(self, now: float) -> bool:
        """Whether it has been sending the head of a request for too long."""
        return self.head_since is not None and now - self.head_since > HEAD_SECONDS

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers)

    def _announces_body(self) -> bool:
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in self.headers
        )

    def _stop_parsing(self, refusal: SandboxAgentError) -> None:
        """Whatever a callback raises ends in `send_400_response`."""
        self._refusal = refusal
        raise refusal

    def _refuse(self, error: SandboxAgentError) -> None:
        self.head_since = None
        if self.transport.is_closing():
            return
        response = problem_response(error)
        self.transport.write(
            b"%b%bcontent-length: %d\r\nconnection: close\r\n\r\n%b"
            % (STATUS_LINE[response.status], response.header_lines, len(response.body), response.body)
        )
        self.transport.close()


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge(f"the request line and headers are over the limit of {HEAD_LIMIT} bytes")


def bounded(sockets: Sockets, base: type[BoundedProtocol] = BoundedProtocol) -> type[BoundedProtocol]:
    return cast("type[BoundedProtocol]", type(base.__name__, (base,), {"sockets": sockets}))


async def close_stalled(state: ServerState, sockets: Sockets, *, every: float = _SWEEP_SECONDS) -> None:
    """Run for as long as the server does: closes sockets whose request never comes to its body, and strangers."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(every)
        now = loop.time()
        sockets.close_overdue(now)
        for connection in list(state.connections):
            if isinstance(connection, BoundedProtocol) and connection.is_stalled(now):
                connection.transport.close()
