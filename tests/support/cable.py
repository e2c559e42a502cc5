"""A TCP cable between a client and a server that a test can cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Cable:
    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: set[asyncio.StreamWriter] = set()
        self.url = ""
        self.cuts = 0

    def cut(self) -> None:
        """Break every connection that is open now; new ones can be made."""
        self.cuts += 1
        for end in self._ends:
            end.transport.abort()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends |= {writer, other_writer}
        try:
            await asyncio.gather(_carry(reader, other_writer), _carry(other_reader, writer))
        finally:
            self._ends -= {writer, other_writer}
            for end in (writer, other_writer):
                end.transport.abort()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(1 << 16):
            target.write(chunk)
            await target.drain()
        target.write_eof()
    except OSError:
        target.transport.abort()


@asynccontextmanager
async def cable_to(port: int) -> AsyncIterator[Cable]:
    cable = Cable(port)
    server = await asyncio.start_server(cable.join, "127.0.0.1", 0)
    cable.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield cable
    finally:
        server.close()
        cable.cut()
