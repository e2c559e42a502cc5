"""`/pty/{id}/connect`: a terminal over a WebSocket, as OpenCode speaks it.

Text frames are what was printed and what is typed. One binary frame, a zero byte and JSON, tells the cursor after what
was printed earlier: whoever counts on from it can come back with `?cursor=` and misses nothing."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from sandbox_agent.errors import Conflict
from sandbox_agent.http.asgi.websocket import Close, accept, close, gone, payload, send_within
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.terminal_text import TerminalReader, TerminalText, without_first
from sandbox_agent.hub.processes.process import Process

_TICK = 15.0
_FROM_END = -1
_MOST = 1 << 53


class TerminalSocket:
    def __init__(self, call: Call, process: Process, text: TerminalText, *, limit: int) -> None:
        self._call = call
        self._process = process
        self._text = text
        self._limit = limit

    async def run(self) -> None:
        cursor = self._cursor()
        await self._call.receive()  # websocket.connect
        await accept(self._call.send, self._call.scope, [])
        reading = asyncio.create_task(self._read())
        writing = asyncio.create_task(self._write(cursor))
        tasks = {reading, writing, asyncio.create_task(gone(self._call.scope))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if writing.done():
                await close(self._call.send, Close.NORMAL, "")
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks, return_exceptions=True)

    def _cursor(self) -> int:
        """Anything that is no number is the beginning, as in OpenCode."""
        try:
            return min(int(self._call.query("cursor") or "0"), _MOST)
        except ValueError:
            return 0

    async def _read(self) -> None:
        """Type what comes, until the peer leaves. One that types faster than the program reads waits."""
        while True:
            message = await self._call.receive()
            if message["type"] == "websocket.disconnect":
                return
            typed = payload(message, self._limit)
            with contextlib.suppress(Conflict):  # it has exited: the socket ends in a moment
                await self._process.write(typed)

    async def _write(self, cursor: int) -> None:
        reader = await self._replay(cursor)
        meta = msgspec.json.encode({"cursor": reader.units})
        await send_within(self._call.send, {"type": "websocket.send", "bytes": b"\0" + meta})
        while not reader.is_over:
            await self._say(await reader.take(wait=_TICK))
        await self._process.exited.wait()

    async def _replay(self, cursor: int) -> TerminalReader:
        """A reader that stands at the end of what was printed so far, when that has been sent from the cursor on."""
        last = self._text.log.last
        reader = TerminalReader(self._text, self._text.newest)
        while reader.position < last:
            await reader.take()
        if cursor <= _FROM_END or cursor >= reader.units:
            return reader
        end, reader = reader.position, TerminalReader(self._text, self._text.before(cursor))
        while reader.position < end:
            before = reader.units
            said = await reader.take()
            await self._say(without_first(said, cursor - before) if cursor > before else said)
        return reader

    async def _say(self, text: str) -> None:
        if text:
            await send_within(self._call.send, {"type": "websocket.send", "text": text})
