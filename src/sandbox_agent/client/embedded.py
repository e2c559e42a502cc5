"""A server of our own: a child process on a free port, with a random token, gone when we are."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from sandbox_agent.errors import ConfigError

_START = 30.0
_STOP = 10.0


class EmbeddedServer:
    def __init__(self, process: asyncio.subprocess.Process, url: str, token: str) -> None:
        self._process = process
        self.url = url
        self.token = token

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    async def start(
        cls,
        *,
        data_dir: Path | str | None = None,
        config: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        flags: tuple[str, ...] = (),
        log: IO[bytes] | int | None = None,
    ) -> EmbeddedServer:
        """Raises ConfigError with what the server said when it does not come up."""
        token = secrets.token_urlsafe(24)
        args = ["server", *(() if "--port" in flags else ("--port", "0")), *flags]
        for flag, value in (("--data-dir", data_dir), ("--config", config)):
            args += [flag, str(value)] if value is not None else []
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sandbox_agent",
            *args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if log is None else log,
            env={**os.environ, **(env or {}), "SANDBOX_AGENT_TOKEN": token},
            start_new_session=True,
        )
        try:
            server = cls(process, await _address(process, process.stdout or asyncio.StreamReader()), token)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if process.stderr is not None:
            server._draining = asyncio.create_task(_drain(process.stderr))
        return server

    _draining: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """End it in good order; by force if it takes too long."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(_STOP):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        if self._draining is not None:
            await self._draining


async def _address(process: asyncio.subprocess.Process, stdout: asyncio.StreamReader) -> str:
    try:
        async with asyncio.timeout(_START):
            line = (await stdout.readline()).decode(errors="replace").strip()
    except TimeoutError:
        raise ConfigError(f"the server did not say where it listens within {_START:g} s") from None
    if not line.startswith("listening on "):
        said = await process.stderr.read() if process.stderr is not None else b""
        raise ConfigError(f"the server did not start: {said.decode(errors='replace').strip() or line}")
    return line.removeprefix("listening on ")


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
