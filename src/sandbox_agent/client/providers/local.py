"""A server on this machine, as a child process: what `SandboxAgent.start()` does without a provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sandbox_agent.client.launch import FREE_PORT, launch_server
from sandbox_agent.client.providers.provider import Machine, Provider


@dataclass(frozen=True)
class _Local:
    flags: tuple[str, ...]
    log: IO[bytes] | int | None

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        server = await launch_server(flags=self.flags, token=token, env=env, log=self.log, ends_with_us=True)
        return Machine(server.url, server.token, server.stop, pid=server.pid)


def local(
    *,
    data_dir: Path | str | None = None,
    config: Path | str | None = None,
    flags: tuple[str, ...] = (),
    log: IO[bytes] | int | None = None,
) -> Provider:
    """The options are those of `SandboxAgent.start`. The server never runs longer than this program."""
    named = (("--data-dir", data_dir), ("--config", config))
    given = tuple(word for flag, value in named if value is not None for word in (flag, str(value)))
    port = () if "--port" in flags else FREE_PORT
    return _Local((*port, *flags, *given), log)
