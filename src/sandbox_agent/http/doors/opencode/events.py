"""`/event` and `/global/event`: server-sent events for as long as the reader reads."""

from __future__ import annotations

import asyncio
from functools import partial

from sandbox_agent.http.asgi.messages import Headers, Send
from sandbox_agent.http.asgi.sse import peer_left
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.followers import Follower
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.http.doors.opencode.others import Others
from sandbox_agent.hub.hub import Hub

HEARTBEAT = 10.0
_HEADERS: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class Events:
    def __init__(self, hub: Hub, live: Live, others: Others) -> None:
        self._hub = hub
        self._live = live
        self._others = others

    async def of_directory(self, call: Call) -> None:
        await self._stream(call, self._live.follow(call.directory, is_global=False))

    async def of_all(self, call: Call) -> None:
        await self._stream(call, self._live.follow(None, is_global=True))

    async def _stream(self, call: Call, follower: Follower) -> None:
        writing = asyncio.create_task(self._write(call, follower))
        leaving = asyncio.create_task(peer_left(call.receive))
        closing = asyncio.create_task(self._hub.closing.wait())
        over = asyncio.create_task(follower.over.wait())
        tasks = {writing, leaving, closing, over}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if (closing.done() or over.done()) and not writing.done():
                follower.end()
                await asyncio.wait({writing}, timeout=0.2)  # a reader that is stalled does not hold us
            if writing.done():
                writing.result()
        finally:
            self._live.unfollow(follower)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, call: Call, follower: Follower) -> None:
        await call.send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await _piece(call.send, self._live.followers.line(follower, "server.connected"))
        if call.method == "HEAD":
            return
        await self._live.tell_recent(follower, partial(self._others.busy, call))
        while not follower.is_done:
            came = await follower.take(wait=HEARTBEAT)
            if came:
                await _piece(call.send, came)
            elif not follower.is_done:
                await _piece(call.send, self._live.followers.line(follower, "server.heartbeat"))
        await call.send({"type": "http.response.body", "body": b""})


async def _piece(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
