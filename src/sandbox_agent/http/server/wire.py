"""The HTTP/1.1 protocol with bounds: on the size and the slowness of a request's head, and on open sockets.

It leans on uvicorn's httptools protocol, of which it overrides five methods; the app stays plain ASGI."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from sandbox_agent.errors import ClientError, HeadTooLarge, Overloaded, SandboxAgentError
from sandbox_agent.http.asgi.problems import problem_response

HEAD_LIMIT = 64 << 10
HEAD_SECONDS = 20.0
_SWEEP_SECONDS = 5.0


class BoundedProtocol(HttpToolsProtocol):
    """Set `max_sockets` on a subclass (see `bounded`) before it is used."""

    max_sockets = 4096

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.head_bytes = 0
        self.head_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.head_since = self.loop.time()
        if len(self.connections) > self.max_sockets:
            self._refuse(Overloaded(f"socket limit ({self.max_sockets}) reached; try again later"))

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.head_since is not None:
            self.head_bytes += len(data)
            if self.head_bytes > HEAD_LIMIT and not self.transport.is_closing():
                self._refuse(HeadTooLarge(f"the request line and headers are over the limit of {HEAD_LIMIT} bytes"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head_bytes = 0
        self.head_since = self.loop.time()

    def on_headers_complete(self) -> None:
        self.head_since = None
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(ClientError(msg))

    def is_stalled(self, now: float) -> bool:
        """Whether it has been sending the head of a request for too long."""
        return self.head_since is not None and now - self.head_since > HEAD_SECONDS

    def _refuse(self, error: SandboxAgentError) -> None:
        self.head_since = None
        response = problem_response(error)
        self.transport.write(
            b"%b%bcontent-length: %d\r\nconnection: close\r\n\r\n%b"
            % (STATUS_LINE[response.status], response.header_lines, len(response.body), response.body)
        )
        self.transport.close()


def bounded(max_sockets: int, base: type[BoundedProtocol] = BoundedProtocol) -> type[BoundedProtocol]:
    return cast("type[BoundedProtocol]", type(base.__name__, (base,), {"max_sockets": max_sockets}))


async def close_stalled(state: ServerState) -> None:
    """Run for as long as the server does: closes sockets whose request never comes to its body."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        now = loop.time()
        for connection in list(state.connections):
            if isinstance(connection, BoundedProtocol) and connection.is_stalled(now):
                connection.transport.close()
