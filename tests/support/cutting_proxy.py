"""A TCP proxy on loopback that cuts every connection through it when a number of bytes has passed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager


class CuttingProxy:
    def __init__(self, port: int, cut_points: Iterable[int] = ()) -> None:
        self._target = port
        self._points = sorted(cut_points, reverse=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.passed = 0
        self.cuts = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """As a cable that is pulled: nothing more gets through, on any connection."""
        self.cuts += 1
        for writer in list(self._writers):
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, onward_writer}
        up = self._pump(reader, onward_writer, is_down=False)
        down = self._pump(onward_reader, writer, is_down=True)
        await asyncio.gather(up, down)
        self._writers -= {writer, onward_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_down: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if is_down and self._points and self.passed + len(data) >= self._points[-1]:
                    writer.write(data[: self._points[-1] - self.passed])  # in the middle of whatever it is
                    self.passed = self._points.pop()
                    self.cut()
                    return
                self.passed += len(data) if is_down else 0
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()


@asynccontextmanager
async def cutting_proxy(port: int, cut_points: Iterable[int] = ()) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(port, cut_points)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
