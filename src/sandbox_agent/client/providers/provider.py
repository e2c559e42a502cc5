"""What a place for servers must offer, and the steps that are the same wherever a server runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from sandbox_agent.errors import ConfigError, ConnectionLost

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

PORT = 2468
"""Where the server listens inside a sandbox."""
_PAUSE = 0.25
_DESTROY = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Machine:
    """A sandbox in which a server starts or runs. `destroy` removes it with all that is in it."""

    url: str
    token: str | None
    destroy: Callable[[], Awaitable[None]]
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request, where the way to the sandbox needs it."""
    pid: int | None = None
    """Of the server's process, where it runs on this machine, with this file system."""


class Provider(Protocol):
    """Make sandboxes with a server in them. One object may be asked for several."""

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        """A sandbox whose server takes `token` (`SANDBOX_AGENT_TOKEN`) and has `env`. It need not answer yet.

        Whoever raises leaves nothing behind that costs anything."""


async def started(provider: Provider, env: Mapping[str, str], *, within: float) -> Machine:
    """A sandbox whose server answers. One that does not within so many seconds is destroyed. Raises ConnectionLost."""
    import secrets  # noqa: PLC0415 - see launch.py

    machine = await provider.create(secrets.token_urlsafe(24), env)
    if machine.pid is not None:
        return machine  # it has said that it listens
    try:
        await _answering(machine, within)
    except BaseException:
        await asyncio.shield(_destroyed(machine))
        raise
    return machine


def command(setup: str | None) -> str:
    """For a shell: start the server on all addresses of the sandbox, after `setup` if there is something to set up."""
    server = f"exec sandbox-agent server --host 0.0.0.0 --port {PORT}"
    return server if setup is None else f"{setup} && {server}"


def environment(token: str, env: Mapping[str, str]) -> dict[str, str]:
    """Of a server in a sandbox. IS_SANDBOX is what agents look at that refuse to run as root elsewhere."""
    return {"IS_SANDBOX": "1", **env, "SANDBOX_AGENT_TOKEN": token}


def vendor(module: str, *, install: str) -> Any:
    """The vendor's SDK. Raises ConfigError that says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, but something that it needs is not
        raise ConfigError(f"the Python package {module!r} is not installed; run: pip install {install}") from None


async def _answering(machine: Machine, within: float) -> None:
    """Ask until the server says that it is well: what answers before it does is the vendor's gateway."""
    headers = {**machine.headers, "Authorization": f"Bearer {machine.token}"}
    deadline = time.monotonic() + within
    said = "nothing answered"
    async with httpx.AsyncClient(base_url=machine.url, headers=headers, timeout=10.0, trust_env=False) as http:
        while (left := deadline - time.monotonic()) > 0:
            try:
                response = await http.get("/v1/health", timeout=min(10.0, left))
                if response.status_code == httpx.codes.OK:
                    return
                said = f"the last answer was {response.status_code}: {response.text[:200]}"
            except httpx.HTTPError as error:
                said = str(error) or type(error).__name__
            await asyncio.sleep(min(_PAUSE, max(deadline - time.monotonic(), 0)))
    raise ConnectionLost(f"the server at {machine.url} did not answer within {within:g} s: {said}")


async def _destroyed(machine: Machine) -> None:
    """As far as it can be: what went wrong before is what the caller has to know."""
    try:
        async with asyncio.timeout(_DESTROY):
            await machine.destroy()
    except Exception:  # noqa: BLE001 - whatever a vendor raises
        _log.exception("the sandbox at %s could not be destroyed: look after it yourself", machine.url)
