"""A container on this machine, by the program `docker` (or `podman`, which takes the same words)."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox_agent.client.providers.provider import PORT, Machine, Provider, command, environment
from sandbox_agent.errors import ConfigError

_REMOVE = 30.0


@dataclass(frozen=True)
class _Docker:
    image: str
    volumes: tuple[str, ...]
    options: tuple[str, ...]
    program: str
    setup: str | None

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        variables = environment(token, env)
        # Names on the command line, values in the environment of `docker`: command lines can be read by everybody.
        named = [word for name in variables for word in ("--env", name)]
        mounted = [word for volume in self.volumes for word in ("--volume", volume)]
        run = ["run", "--detach", "--rm", "--init", "--publish", f"127.0.0.1::{PORT}", *named, *mounted]
        inside = ["sh", "-c", command(self.setup)]
        container = (await self._docker(*run, *self.options, self.image, *inside, env=variables)).strip()

        async def destroy() -> None:
            async with asyncio.timeout(_REMOVE):
                await self._docker("rm", "--force", "--volumes", container)

        try:
            address = (await self._docker("port", container, f"{PORT}/tcp")).split()[0]
        except BaseException:
            await asyncio.shield(destroy())
            raise
        return Machine(f"http://{address}", token, destroy)

    async def _docker(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                self.program, *words, stdout=PIPE, stderr=PIPE, env={**os.environ, **(env or {})}
            )
        except FileNotFoundError:
            raise ConfigError(f"{self.program!r} is not installed, or not on the PATH") from None
        out, err = await process.communicate()
        if process.returncode != 0:
            raise ConfigError(f"{self.program} {words[0]} failed: {err.decode(errors='replace').strip()}")
        return out.decode()


def docker(
    image: str = "sandbox-agent",
    *,
    volumes: Sequence[str] = (),
    options: Sequence[str] = (),
    program: str = "docker",
    setup: str | None = None,
) -> Provider:
    """A container of `image`, removed in the end; reachable from this machine only.

    `volumes` are as for `docker run --volume`, `options` further words for `docker run`. An image without
    sandbox-agent needs a `setup` command that installs it."""
    return _Docker(image, tuple(volumes), tuple(options), program, setup)
