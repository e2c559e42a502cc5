"""`sandbox-agent stdio`: an ACP agent on stdin and stdout that is really a connection to a server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
from typing import TYPE_CHECKING

import msgspec

from sandbox_agent.client.launch import FREE_PORT, launch_server
from sandbox_agent.client.rpc.ledger import has_our_meta, with_meta
from sandbox_agent.client.rpc.transport import RpcTransport
from sandbox_agent.client.rpc.trust import trusted
from sandbox_agent.core import frames
from sandbox_agent.core.methods import EXTENSION_PREFIX
from sandbox_agent.errors import MalformedMessage, SandboxAgentError
from sandbox_agent.settings import load_settings

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

_PATIENCE = 60.0
"""Seconds that a server which cannot be reached is waited for."""


def run_stdio(*, endpoint: str | None, agent: str, token: str | None, ca_file: str | None) -> None:
    """Until stdin ends, or INT or TERM. Raises ConfigError when no server can be started."""
    asyncio.run(_run(endpoint, agent, token, ca_file))


async def _run(endpoint: str | None, agent: str, token: str | None, ca_file: str | None) -> None:
    stdin = _Stdin(limit=load_settings(os.environ, None, {}).max_body_bytes)
    await stdin.open()
    if not await stdin.has_more():
        return  # nobody speaks: no server is needed to hear it
    if endpoint is not None:
        await _bridge(stdin, endpoint.rstrip("/"), agent, token, ca_file)
        return
    # one of our own keeps no history, as the agent itself can load its sessions
    flags = (*FREE_PORT, "--store", "memory", "--log-level", "warning")
    server = await launch_server(flags=flags, log=sys.stderr.fileno(), ends_with_us=True)
    try:
        await _bridge(stdin, server.url, agent, server.token, None)
    finally:
        await server.stop()


async def _bridge(stdin: _Stdin, endpoint: str, agent: str, token: str | None, ca_file: str | None) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    limits = httpx.Limits(max_connections=None)
    verify = trusted(endpoint, ca_file)
    async with httpx.AsyncClient(
        base_url=endpoint, headers=headers, limits=limits, verify=verify, trust_env=False
    ) as http:
        editor = _Editor(http, agent)
        reading = asyncio.create_task(editor.read(stdin))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, reading.cancel)
        try:
            await asyncio.wait({reading})
            if not reading.cancelled():
                reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await editor.close()


class _Stdin:
    """Lines of standard input, whatever it is: a pipe, a terminal, a file, /dev/null."""

    def __init__(self, *, limit: int) -> None:
        self._reader = asyncio.StreamReader(limit=limit)
        self._first: bytes | None = None

    async def open(self) -> None:
        kind = os.fstat(sys.stdin.fileno()).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or sys.stdin.isatty():
            loop = asyncio.get_running_loop()
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), sys.stdin)
        else:  # a file or /dev/null, which never makes one wait
            self._reader.feed_data(await asyncio.to_thread(sys.stdin.buffer.read))
            self._reader.feed_eof()

    async def has_more(self) -> bool:
        """Whether another line comes; waits for it."""
        if self._first is None:
            self._first = await self._reader.readline()
        return bool(self._first)

    async def line(self) -> bytes:
        """The next line; empty at the end."""
        first, self._first = self._first, None
        return await self._reader.readline() if first is None else first


class _Editor:
    """Our notifications are only for clients whose handshake has our part of `_meta`: others complain of them."""

    def __init__(self, http: httpx.AsyncClient, agent: str) -> None:
        self._agent = agent
        self._rpc = RpcTransport(http, self._write_lines, retry_for=_PATIENCE, open_for=_PATIENCE)
        self._knows_extensions = False

    async def read(self, stdin: _Stdin) -> None:
        """Take the client's messages in order until it closes."""
        while line := await stdin.line():
            if line.strip():
                with contextlib.suppress(SandboxAgentError):  # a request that failed has been answered
                    await self._rpc.send(self._for_server(line.strip()))

    async def close(self) -> None:
        await self._rpc.close()

    def _for_server(self, line: bytes) -> bytes:
        """The message, and in the handshake the agent; one that is malformed is for the transport to refuse."""
        with contextlib.suppress(MalformedMessage, msgspec.MsgspecError):
            if frames.parse(line).method == "initialize":
                self._knows_extensions = has_our_meta(line)
                return with_meta(line, "agent", self._agent)
        return line

    async def _write_lines(self, lines: list[bytes]) -> None:
        """In a thread: a client that does not read must not keep us from reading what it writes."""
        shown = [line for line in lines if self._knows_extensions or not _is_our_notice(line)]
        if shown:
            await asyncio.to_thread(_write, b"".join([line + b"\n" for line in shown]))


def _is_our_notice(line: bytes) -> bool:
    frame = frames.parse(line)
    return not frame.is_request and (frame.method or "").startswith(EXTENSION_PREFIX)


def _write(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
