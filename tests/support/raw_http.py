"""HTTP/1.1 by hand: for tests that care about bytes, pieces and sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

DEADLINE = 30.0


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


class RawClient:
    """One socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()

    async def read_reply(self) -> Reply:
        async with asyncio.timeout(DEADLINE):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = [line.partition(": ") for line in head[1:] if line]
            headers = {name.lower(): value for name, _, value in pairs}
            body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return Reply(int(head[0].split()[1]), headers, body)

    async def read_end(self) -> bytes:
        """Everything until the server closes."""
        async with asyncio.timeout(DEADLINE):
            return await self._reader.read()

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def raw_client(port: int) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = RawClient(reader, writer)
    try:
        yield client
    finally:
        writer.close()


def post_request(body: bytes, *headers: str, path: str = "/", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *headers, f"Content-Length: {size}", "Accept: */*"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
