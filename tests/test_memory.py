"""What nobody uses any more is found in a server that does nothing, too."""

from __future__ import annotations

import asyncio
import gc
import weakref

from sandbox_agent.memory import give_back
from support.waiting import until


class _Circle:
    def __init__(self) -> None:
        self.itself = self


async def test_circles_that_have_grown_old_are_found_without_load() -> None:
    circle = _Circle()
    left = weakref.ref(circle)
    gc.collect()  # it is of the oldest generation now, which is looked at last
    del circle
    assert left() is not None
    tidying = asyncio.create_task(give_back(every=0.01))
    await until(lambda: left() is None)
    tidying.cancel()
