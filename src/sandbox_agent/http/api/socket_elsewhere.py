"""A client's WebSocket, served by another node: what either side says goes to the other.

Nothing is kept in between: one who does not read holds up the one who writes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import CloseCode

from sandbox_agent.errors import StoreError
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Message, Response, send_response
from sandbox_agent.http.asgi.websocket import Close, accept, gone, send_within
from sandbox_agent.hub.cluster.dialling import CLOSE_SECONDS, DIAL_SECONDS, open_socket, refused

_LOOKS = 2.0
"""Seconds between looks whether the node is still there: one that is paused or cut off does not say goodbye."""
_MOST_FRAMES, _MOST_BYTES = 4, 1 << 20
_UNAUTHORIZED = 401
_PASSED_ON = frozenset({"content-type", "retry-after"})


class SocketElsewhere:
    def __init__(self, exchange: Exchange, node: str, is_alive: Callable[[], Awaitable[bool]]) -> None:
        self._exchange = exchange
        self._node = node
        self._is_alive = is_alive

    async def serve(self, url: str, target: str, headers: Mapping[str, str], *, ca_file: str | None) -> None:
        """The client is accepted once the node has accepted it, and else told what the node says.

        Raises NodeUnreachable."""
        try:
            there = await open_socket(
                self._node,
                url,
                target,
                headers,
                ca_file=ca_file,
                max_size=_MOST_BYTES,
                max_queue=_MOST_FRAMES,
                open_timeout=DIAL_SECONDS,
                ping_interval=None,  # a pong would wait behind what a slow client has yet to read
                close_timeout=CLOSE_SECONDS,
            )
        except InvalidStatus as error:
            if error.response.status_code == _UNAUTHORIZED:
                raise refused(self._node, url, _UNAUTHORIZED) from None
            await send_response(_refusal(error), self._exchange.scope, self._exchange.send)
            return
        try:
            await self._exchange.receive()  # websocket.connect
            await accept(self._exchange.send, self._exchange.scope, [])
            await self._join(there)
        finally:
            await there.close(Close.GOING_AWAY)

    async def _join(self, there: ClientConnection) -> None:
        """Until either side ends it; the other is told how."""
        asking = asyncio.create_task(self._ask(there))
        telling = asyncio.create_task(self._tell(there))
        vanishing = asyncio.create_task(self._vanish())
        tasks = {asking, telling, vanishing, asyncio.create_task(gone(self._exchange.scope))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks, return_exceptions=True)
        if telling in done or vanishing in done:
            await send_within(self._exchange.send, self._goodbye(there), CLOSE_SECONDS)

    async def _ask(self, there: ClientConnection) -> None:
        """Until the client leaves. One that says more than the node takes waits."""
        while (message := await self._exchange.receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            try:
                await there.send(message["bytes"] if text is None else text)
            except ConnectionClosed:
                await asyncio.Event().wait()  # the other direction ends as well, and knows why
        await there.close(_said(message.get("code"), Close.GOING_AWAY))

    async def _tell(self, there: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for frame in there:
                kind = "text" if isinstance(frame, str) else "bytes"
                await send_within(self._exchange.send, {"type": "websocket.send", kind: frame})

    async def _vanish(self) -> None:
        """Return when the node is gone."""
        is_alive = True
        while is_alive:
            await asyncio.sleep(_LOOKS)
            with contextlib.suppress(StoreError):
                is_alive = await self._is_alive()

    def _goodbye(self, there: ClientConnection) -> Message:
        code = _said(there.close_code, Close.BAD_GATEWAY)
        reason = f"node {self._node} is gone"[:100] if code == Close.BAD_GATEWAY else there.close_reason
        return {"type": "websocket.close", "code": code, "reason": reason}


def _said(code: int | None, otherwise: Close) -> int:
    """A code with which a peer has closed, where it may be sent on; `otherwise` for one that only vanished."""
    if code == CloseCode.NO_STATUS_RCVD:
        return Close.NORMAL
    return otherwise if code in (None, CloseCode.ABNORMAL_CLOSURE, CloseCode.TLS_HANDSHAKE) else int(code)


def _refusal(error: InvalidStatus) -> Response:
    said = error.response
    kept = [(name.lower(), value) for name, value in said.headers.raw_items() if name.lower() in _PASSED_ON]
    headers = tuple((name.encode(), value.encode()) for name, value in kept)
    return Response(said.status_code, bytes(said.body), headers=headers)
