"""What a server does for its database every now and then: keep its leases, and remove what is too old."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from sandbox_agent.errors import StoreError
from sandbox_agent.store.base import Retention
from sandbox_agent.store.postgres.connecting import Connection, Readers
from sandbox_agent.store.postgres.leases import Superseded
from sandbox_agent.store.postgres.writing import remove_aged, remove_beyond

_RETENTION_SECONDS = 60.0
_ROWS = 200
_log = logging.getLogger("sandbox_agent.store")


async def keep_up(
    readers: Readers,
    renew: Callable[[Connection], Awaitable[None]],
    on_superseded: Callable[[Superseded], None],
    retention: Retention,
    clock: Callable[[], float],
    *,
    lease: float,
) -> None:
    """Renew leases six times before they end. Runs until cancelled, or until another server has taken our place."""
    cleared = -_RETENTION_SECONDS
    while True:
        try:
            async with asyncio.timeout(lease / 3), readers.lend() as connection:
                await renew(connection)
                if time.monotonic() - cleared > _RETENTION_SECONDS:
                    cleared = time.monotonic()
                    await clear_out(connection, retention, clock())
        except Superseded as error:
            on_superseded(error)
            return
        except (StoreError, TimeoutError) as error:
            _log.debug("leases were not renewed: %s", error)  # who writes says what is wrong
        await asyncio.sleep(lease / 6)


async def clear_out(connection: Connection, retention: Retention, now: float) -> None:
    if retention.age is not None:
        while await remove_aged(connection, now - retention.age, _ROWS):
            pass
    if retention.bytes is not None:
        while await remove_beyond(connection, retention.bytes, _ROWS // 10):
            pass
