"""A process's terminal over a WebSocket; when the connection is lost it is opened again where it was."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from sandbox_agent.client.api import Api
from sandbox_agent.client.rpc.problems import from_response
from sandbox_agent.errors import ConnectionLost, SandboxAgentError

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

_PIECE = 32 << 10
_RETRIES = 8
_PAUSE = 0.25
_OF_HTTP = frozenset({"accept", "accept-encoding", "connection", "user-agent"})
"""What httpx sends of its own accord; the rest is the token, and what the way to the server needs."""


class TerminalExit(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int | None = None
    signal: str | None = None


class TerminalConnection:
    """Use with `async with`, and iterate over it for what is printed; `exit` is set when the process has exited."""

    def __init__(self, api: Api, process_id: str, *, after: int | None = None) -> None:
        http = api.http
        base = str(http.base_url).rstrip("/")
        self._verify = api.verify
        self._address = f"ws{base.removeprefix('http')}/v1/processes/{process_id}/terminal/ws"
        self._headers = {name: value for name, value in http.headers.items() if name not in _OF_HTTP}
        self._position = after
        self._size: tuple[int, int] | None = None
        self._socket: ClientConnection | None = None
        self._is_left = False
        self.exit: TerminalExit | None = None

    async def __aenter__(self) -> Self:
        self._socket = await self._connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ConnectionLost when the server stays away."""
        while self.exit is None and not self._is_left:
            try:
                async for message in self._open():
                    if isinstance(message, bytes):
                        self._position = (self._position or 0) + 1
                        yield message
                    else:
                        self._hear(msgspec.json.decode(message))
            except ConnectionClosed:
                pass
            if self.exit is None and not self._is_left:
                await self._come_back()

    async def send(self, keys: bytes) -> None:
        """Type. Waits while the server takes no more."""
        for start in range(0, len(keys), _PIECE):
            piece = base64.b64encode(keys[start : start + _PIECE]).decode()
            await self._send({"type": "input", "data": piece, "encoding": "base64"})

    async def resize(self, cols: int, rows: int) -> None:
        self._size = (cols, rows)
        await self._send({"type": "resize", "cols": cols, "rows": rows})

    async def leave(self) -> None:
        """The process goes on."""
        self._is_left = True
        if self._socket is not None:
            with contextlib.suppress(TimeoutError, OSError, WebSocketException):
                async with asyncio.timeout(2.0):
                    await self._socket.close()

    def _open(self) -> ClientConnection:
        if self._socket is None:
            raise ConnectionLost("not connected: use `async with`")
        return self._socket

    def _hear(self, frame: dict[str, Any]) -> None:
        match frame.get("type"):
            case "ready":
                self._position = frame.get("after", 0)
            case "exit":
                self.exit = msgspec.convert(frame, TerminalExit)
            case "error" if "cut" in frame:
                self._position = frame["cut"]["toSequence"]

    async def _send(self, frame: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionClosed):  # whoever iterates brings it back, or says that it cannot
            await self._open().send(msgspec.json.encode(frame).decode())

    async def _come_back(self) -> None:
        for attempt in range(_RETRIES):
            await asyncio.sleep(_PAUSE * attempt)
            try:
                self._socket = await self._connect()
            except ConnectionLost:
                if attempt == _RETRIES - 1:
                    raise
            else:
                if self._size is not None:
                    await self.resize(*self._size)
                return

    async def _connect(self) -> ClientConnection:
        query = "" if self._position is None else f"?after={self._position}"
        secure = {"ssl": self._verify} if isinstance(self._verify, ssl.SSLContext) else {}
        try:
            return await connect(
                self._address + query,
                additional_headers=self._headers,
                proxy=None,
                max_size=None,
                max_queue=8,
                open_timeout=10.0,
                **secure,  # type: ignore[arg-type]
            )
        except InvalidStatus as error:
            raise _refusal(error) from None
        except (OSError, TimeoutError, WebSocketException) as error:
            raise ConnectionLost(f"the terminal at {self._address} cannot be reached: {error}") from error


def _refusal(error: InvalidStatus) -> SandboxAgentError:
    answer = error.response
    headers = {name: value for name, value in answer.headers.raw_items() if name.lower() == "content-type"}
    return from_response(httpx.Response(answer.status_code, headers=headers, content=bytes(answer.body or b"")))
