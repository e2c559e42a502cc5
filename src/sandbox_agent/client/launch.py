"""Starts `sandbox-agent server` as a child process: for a block of code, for one command, or for good."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO

from sandbox_agent.errors import ConfigError

FREE_PORT = ("--port", "0")
_START = 30.0
_STOP = 10.0


class LaunchedServer:
    """A server that we started. It goes on when we end, unless it is stopped or was to end with us."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, token: str | None) -> None:
        self._process = process
        self.url = url
        self.token = token

    @property
    def pid(self) -> int:
        return self._process.pid

    async def stop(self) -> None:
        """End it in good order; by force if it takes too long."""
        await asyncio.to_thread(_end, self._process)


async def launch_server(
    *,
    flags: tuple[str, ...] = (),
    token: str | None = None,
    env: Mapping[str, str] | None = None,
    log: IO[bytes] | int | None = None,
    cwd: str | None = None,
    ends_with_us: bool = False,
) -> LaunchedServer:
    """A server that listens. `FREE_PORT` is the flag for a port of its own.

    Without a `token` a random one is made, unless `--no-token` is among the flags. What the server logs goes to
    `log`, or nowhere. `ends_with_us`: it stops when this process ends, whatever ends it, and
    keeps its history in memory where another server has the one of the data directory.
    Raises ConfigError with what the server said when it does not come up."""
    import secrets  # noqa: PLC0415 - a third of what importing the SDK would cost, for those who start no server

    has_token = "--no-token" not in flags
    token = (token or secrets.token_urlsafe(24)) if has_token else None
    variables = {**os.environ, **(env or {})}
    variables.pop("SANDBOX_AGENT_TOKEN", None)
    if ends_with_us:
        variables.setdefault("SANDBOX_AGENT_STORE", "auto")
    owned = ("--ends-with", str(os.getpid())) if ends_with_us else ()
    process = subprocess.Popen(  # noqa: ASYNC220 - asyncio's own would kill it with the event loop
        [sys.executable, "-m", "sandbox_agent", "server", *flags, *owned],
        stdin=subprocess.PIPE if ends_with_us else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if log is None else log,
        env={**variables, "SANDBOX_AGENT_TOKEN": token} if token is not None else variables,
        cwd=cwd,
        start_new_session=True,
    )
    said = bytearray()
    draining = None
    if process.stderr is not None:
        draining = threading.Thread(target=_drain, args=(process.stderr, said), daemon=True)
        draining.start()
    try:
        async with asyncio.timeout(_START):
            line = await asyncio.to_thread(_first_line, process)
    except BaseException as error:
        _kill(process)
        if isinstance(error, TimeoutError):
            raise ConfigError(f"the server did not say where it listens within {_START:g} s") from None
        raise
    if line.startswith("listening on "):
        return LaunchedServer(process, line.removeprefix("listening on "), token)
    _kill(process)
    if draining is not None:
        draining.join(timeout=1.0)
    raise ConfigError(f"the server did not start: {said.decode(errors='replace').strip() or line or 'see its log'}")


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """The one line that the server writes to stdout; nobody has to read that pipe afterwards."""
    if process.stdout is None:
        return ""
    with process.stdout:
        return process.stdout.readline().decode(errors="replace").strip()


def _drain(stream: IO[bytes], said: bytearray) -> None:
    """Keep the head of what the server logs, for the case that it does not start."""
    with stream:
        while piece := stream.read1(65536):  # type: ignore[attr-defined]
            if len(said) < 65536:
                said += piece


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
    _let_go(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    _let_go(process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
