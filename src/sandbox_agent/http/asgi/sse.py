"""Server-sent events: many in one write, a heartbeat when idle, an end with a reason."""

from __future__ import annotations

import asyncio
import contextlib

from sandbox_agent.http.asgi.messages import Headers, Push, Receive, Scope, Send
from sandbox_agent.hub.clients.stream import Batch, Reader

HEARTBEAT = 15.0
_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def encode(batch: Batch) -> bytes:
    """A batch as SSE. Lines are single JSON lines, so each is one data field."""
    return b"".join(
        [b"event: message\nid: %d\ndata: %b\n\n" % event for event in enumerate(batch.lines, batch.first_id)]
    )


async def begin(send: Send, headers: Headers | None = None) -> None:
    """Headers and a first comment, so that the peer knows at once that it is connected."""
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS + (headers or [])})
    await send({"type": "http.response.body", "body": b": open\n\n", "more_body": True})


async def beat(send: Send) -> None:
    await send({"type": "http.response.body", "body": b": heartbeat\n\n", "more_body": True})


async def finish(send: Send, reason: str) -> None:
    await send({"type": "http.response.body", "body": b": end: %b\n\n" % reason.encode()})


async def stream_events(
    reader: Reader,
    scope: Scope,
    receive: Receive,
    send: Send,
    headers: Headers | None = None,
    *,
    has_begun: bool = False,
) -> None:
    """Send what the reader gives until the stream, the reader or the peer ends. Closes the reader."""
    writing = asyncio.create_task(_write(reader, send, headers, scope.get("push"), has_begun=has_begun))
    leaving = asyncio.create_task(peer_left(receive))
    stopping = asyncio.create_task(reader.stopped.wait())
    tasks = {writing, leaving, stopping}
    try:
        await asyncio.wait({writing, leaving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done() and not writing.done():  # a peer that reads gets the reason; a stalled one does not hold us
            await asyncio.wait({writing}, timeout=0.2)
        if writing.done():
            writing.result()
    finally:
        reader.close()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


async def _write(reader: Reader, send: Send, headers: Headers | None, push: Push | None, *, has_begun: bool) -> None:
    if not has_begun:
        await begin(send, headers)
    if push is not None:
        reader.give = lambda batch: push(encode(batch))
    while True:
        batch = await reader.take(wait=HEARTBEAT)
        if batch is not None:
            await send({"type": "http.response.body", "body": encode(batch), "more_body": True})
        elif reader.is_over:
            break
        else:
            await beat(send)
    await finish(send, reader.over_because)


async def peer_left(receive: Receive) -> None:
    """Return when the peer has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
