"""Waiting for a fact inside a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(is_so: Callable[[], bool], *, deadline: float = 30.0) -> None:
    async with asyncio.timeout(deadline):
        while not is_so():
            await asyncio.sleep(0.005)
