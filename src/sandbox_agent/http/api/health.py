"""`GET /v1/health`."""

from __future__ import annotations

import time
from typing import Literal

import msgspec

from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.routes import Operation
from sandbox_agent.hub.hub import Hub
from sandbox_agent.hub.sessions.views import running_agents
from sandbox_agent.store.base import StoreHealth
from sandbox_agent.version import __version__


class Health(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`ok` as long as the server answers. `store.state` says whether history is being kept."""

    status: Literal["ok"]
    version: str
    uptime_ms: int
    store: StoreHealth
    agents_running: list[str]
    connections: int


SHOW_HEALTH = Operation(
    name="showHealth",
    summary="Whether the server is well",
    tag="server",
    returns=Health,
    example={
        "status": "ok",
        "version": __version__,
        "uptimeMs": 86400000,
        "store": {
            "kind": "sqlite",
            "state": "ok",
            "pendingBytes": 0,
            "lostEntries": 0,
            "problem": None,
            "path": "/home/me/.local/share/sandbox-agent/history.db",
            "damaged": 0,
            "setAside": [],
        },
        "agentsRunning": ["mock"],
        "connections": 1,
    },
)


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
            agents_running=sorted(agent.id for agent in running_agents(self._hub)),
            connections=len(self._hub.connections),
        )
