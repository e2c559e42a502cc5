"""`sandbox-agent stdio`: an ACP agent on stdin and stdout that is really a connection to a server."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator

import httpx

from sandbox_agent.cli.remote import Remote
from sandbox_agent.errors import ConfigError
from sandbox_agent.settings import load_settings

_STOP = 10.0


def run_stdio(*, endpoint: str | None, agent: str, token: str | None) -> None:
    """Until stdin ends, or INT or TERM. Raises ConfigError when no server can be started."""
    with contextlib.ExitStack() as stack:
        if endpoint is None:
            endpoint, token = stack.enter_context(_embedded_server())
        asyncio.run(_bridge(endpoint.rstrip("/"), agent, token))


async def _bridge(endpoint: str, agent: str, token: str | None) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=endpoint, headers=headers, limits=limits, trust_env=False) as http:
        remote = Remote(http, agent, _write_lines)
        reading = asyncio.create_task(_read_lines(remote))
        following = asyncio.create_task(remote.follow())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, reading.cancel)
        try:
            await asyncio.wait({reading, following}, return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, following):
                if task.done() and not task.cancelled():
                    task.result()
        finally:
            for task in (reading, following):
                task.cancel()
            await asyncio.gather(reading, following, return_exceptions=True)
            await remote.close()


async def _read_lines(remote: Remote) -> None:
    """Take the client's messages in order until it closes."""
    reader = asyncio.StreamReader(limit=load_settings(os.environ, None, {}).max_body_bytes)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line.strip():
            await remote.send(line.strip())


async def _write_lines(lines: list[bytes]) -> None:
    """In a thread: a client that does not read must not keep us from reading what it writes."""
    if lines:
        await asyncio.to_thread(_write, b"".join([line + b"\n" for line in lines]))


def _write(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def _embedded_server() -> Iterator[tuple[str, str]]:
    """A server of our own: its address and token. It keeps no history, as the agent itself can load its sessions."""
    token = secrets.token_urlsafe(24)
    command = [sys.executable, "-m", "sandbox_agent", "server", "--port", "0", "--store", "memory"]
    env = {**os.environ, "SANDBOX_AGENT_TOKEN": token}
    server = subprocess.Popen(
        [*command, "--log-level", "warning"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no thread runs yet
    )
    try:
        line = server.stdout.readline().strip() if server.stdout is not None else ""
        if not line.startswith("listening on "):
            raise ConfigError("the embedded server did not start; see above")
        yield line.removeprefix("listening on "), token
    finally:
        server.terminate()
        try:
            server.wait(timeout=_STOP)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _end_with_parent() -> None:
    """In the child: have the kernel send TERM when we die, however we die."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
