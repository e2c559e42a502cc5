"""`GET /v1/health`."""

from __future__ import annotations

import time
from typing import Literal

import msgspec

from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.routes import Operation
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import StoreHealth
from sandbox_agent.version import __version__


class Health(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`status` is `ok` while the server responds. `store.state` tells whether history is being saved."""

    status: Literal["ok"]
    version: str
    uptime_ms: int
    store: StoreHealth
    agents_running: list[str]
    connections: int


SHOW_HEALTH = Operation("showHealth", "Get the server's health", "server", returns=Health)


class HealthApi:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._started = time.monotonic()

    async def show(self, _: Exchange) -> Health:
        return Health(
            status="ok",
            version=__version__,
            uptime_ms=int((time.monotonic() - self._started) * 1000),
            store=self._hub.store.health(),
            agents_running=sorted(self._hub.agents.running),
            connections=len(self._hub.clients),
        )
