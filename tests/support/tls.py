"""TLS in front of a server: a certificate of its own, and a proxy that ends TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.node import require_tool


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Key and certificate for 127.0.0.1, which is its own authority."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = [require_tool("openssl"), *kind, *subject, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return key, cert


class TlsProxy:
    def __init__(self, server: asyncio.Server) -> None:
        self.target = 0
        """The port behind it; to be set before anybody comes."""
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def tls_proxy(key: Path, cert: Path) -> AsyncIterator[TlsProxy]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        ends = [writer]
        try:
            onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", proxy.target)
            ends.append(onward_writer)
            await asyncio.gather(_pump(reader, onward_writer), _pump(onward_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in ends:
                end.transport.abort()
                with contextlib.suppress(OSError):
                    await end.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    proxy = TlsProxy(server)
    try:
        yield proxy
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
