"""A proxy that serves a server below a prefix, as people put several under one name. It knows nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def below_prefix(port: int, prefix: str) -> AsyncIterator[str]:
    """The address of the prefix. Whatever asks for anything outside it gets 404."""

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await _pass_on(reader, writer, port, prefix)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # somebody has left, or the proxy ends
        finally:
            serving.discard(task)
            await _close(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{prefix}"
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, prefix: str) -> None:
    """One request per connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request, *headers = head.removesuffix("\r\n\r\n").split("\r\n")
    method, path, version = request.split(" ")
    if not path.startswith(f"{prefix}/"):
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return
    kept = [header for header in headers if not header.lower().startswith("connection:")]
    inner, outer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"{method} {path.removeprefix(prefix)} {version}", *kept, "Connection: close", "", ""]
    outer.write("\r\n".join(lines).encode("latin-1"))
    up = asyncio.create_task(_copy(reader, outer))
    try:
        await _copy(inner, writer)
    finally:
        up.cancel()
        await asyncio.gather(up, return_exceptions=True)
        await _close(outer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
