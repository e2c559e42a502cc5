"""What stands between two nodes: a TCP proxy that passes on, refuses, or swallows everything in silence."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

State = Literal["open", "refused", "silent"]


class LinkProxy:
    def __init__(self) -> None:
        self.target = 0
        """The port of the node behind it; it may change while the node is down."""
        self._state: State = "open"
        self._opened = asyncio.Event()
        self._opened.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def set(self, state: State) -> None:
        self._state = state
        if state == "silent":
            self._opened.clear()
        else:
            self._opened.set()
        if state == "refused":
            self._abort()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self._abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self._state == "refused":
                writer.transport.abort()
                return
            await self._opened.wait()
            onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers |= {writer, onward_writer}
            await asyncio.gather(self._pump(reader, onward_writer), self._pump(onward_reader, writer))
            self._writers -= {writer, onward_writer}
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._opened.wait()
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()


@asynccontextmanager
async def link_proxy() -> AsyncIterator[LinkProxy]:
    proxy = LinkProxy()
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
