"""The door `/v1/nodes/link`: another node of the cluster comes in, over a WebSocket, with the clients that it has."""

from __future__ import annotations

import asyncio
import contextlib
import hmac

from sandbox_agent.errors import MalformedMessage, TooLarge
from sandbox_agent.http.access.auth import REFUSED
from sandbox_agent.http.asgi.exchange import header
from sandbox_agent.http.asgi.messages import Receive, Scope, Send, send_response
from sandbox_agent.http.asgi.websocket import Close, accept, close, payload, send_within
from sandbox_agent.hub.hub import Hub

HEAD_ROOM = 4096
"""Bytes that a message of a link may have beside the client's own."""


class LinkDoor:
    """Refuses everybody who has not the cluster's token, and everybody where none is set."""

    def __init__(self, hub: Hub, token: str | None, *, body_limit: int) -> None:
        self._hub = hub
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._limit = body_limit + HEAD_ROOM

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = (header(scope, b"authorization") or "").encode()
        if self._expected is None or not hmac.compare_digest(given, self._expected):
            await send_response(REFUSED, scope, send)
            return
        from sandbox_agent.hub.cluster import wire  # noqa: PLC0415 - only for who has a cluster
        from sandbox_agent.hub.cluster.guests import Guests  # noqa: PLC0415

        await receive()  # websocket.connect
        await accept(send, scope, [(wire.FORM_HEADER.lower().encode(), b"%d" % wire.FORM)])

        stalled = asyncio.Event()

        async def post(message: bytes) -> None:
            try:
                await send_within(send, {"type": "websocket.send", "bytes": message})
            except OSError:
                stalled.set()  # what was not sent would be missing: the other side has to come anew
                raise

        async def read() -> None:
            while (message := await receive())["type"] != "websocket.disconnect":
                await guests.take(payload(message, self._limit))

        guests = Guests(self._hub, post)
        work = [asyncio.create_task(read()), asyncio.create_task(stalled.wait())]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            if work[0].done():
                await work[0]
        except (MalformedMessage, TooLarge) as error:
            with contextlib.suppress(OSError):
                await close(send, Close.POLICY, error.detail)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            await guests.close()
