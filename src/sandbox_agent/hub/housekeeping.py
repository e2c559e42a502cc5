"""What the hub looks after by itself: a store in trouble, connections and processes that nobody uses any more."""

from __future__ import annotations

import asyncio
import logging
import time

from sandbox_agent.core import frames
from sandbox_agent.core.methods import RUNTIME_ERROR
from sandbox_agent.hub.hub import Hub

_log = logging.getLogger(__name__)
_STORE_EVERY = 0.5
_IDLE_EVERY = 30.0


async def watch_store(hub: Hub, every: float = _STORE_EVERY) -> None:
    """Tell every client when history stops being written, and when it is written again. Runs until cancelled."""
    state = hub.store.health().state
    while True:
        await asyncio.sleep(every)
        health = hub.store.health()
        if health.state == state:
            continue
        state = health.state
        said = "history is written again" if state == "ok" else f"history is not being written: {health.problem}"
        params = {"code": f"store_{state}", "message": said, "details": health}
        line = frames.notification(RUNTIME_ERROR, params)
        for connection in hub.clients.values():
            connection.deliver_own(None, line)


async def close_idle(hub: Hub, patience: float) -> None:
    """Close connections that have been neither read nor used for `patience` seconds. Runs until cancelled.

    Their clients have left without a word; sessions and history stay, as after any other close."""
    while True:
        await asyncio.sleep(min(_IDLE_EVERY, patience / 2))
        now = time.monotonic()
        for connection in list(hub.clients.values()):
            if connection.is_used:
                connection.last_used = now
            elif now - connection.last_used > patience:
                _log.info("idle connection closed connection=%s", connection.id)
                await hub.close_connection(connection.id)


async def rest_idle(hub: Hub, patience: float) -> None:
    """End processes of single sessions in which nothing has happened for `patience` seconds. Runs until cancelled.

    Only where nobody is attached and the agent can take the session up again: the next prompt wakes it."""
    while True:
        await asyncio.sleep(min(_IDLE_EVERY, patience / 2))
        for agent in await hub.agents.rest_idle(time.monotonic() - patience):
            _log.info("idle agent process ended agent=%s session=%s", agent.id, agent.own_session)
