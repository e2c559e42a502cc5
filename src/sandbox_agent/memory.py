"""The interpreter's collector and the C library's allocator, set for a server that runs for months.

Agents and clients come and go, and what they leave behind refers to itself in circles, which the collector finds only
by looking. By default it looks when much has been allocated: often under load, and hardly ever in a quiet server, which
then holds what it no longer needs for hours.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import sys
import time
from collections.abc import Callable

_EVERY = 60.0
_PAUSE = 0.05
"""Seconds. Where a full collection takes longer than this, so much is held that it is left to the collector's own
rule: nobody should wait for it every minute."""


def favour_the_loop() -> None:
    """What is loaded by now stays: the collector need not look at it again, nor look so often.

    And the store's thread hands the interpreter back sooner: the loop is who somebody waits for."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(0.001)


async def give_back(every: float = _EVERY) -> None:
    """Find what is no longer used, and return free memory to the system. Runs until cancelled."""
    trim = _trimmer()
    took = 0.0
    while True:
        await asyncio.sleep(every)
        begun = time.perf_counter()
        gc.collect(2 if took < _PAUSE else 1)
        took = max(took, time.perf_counter() - begun)
        await asyncio.to_thread(trim, 0)


def _trimmer() -> Callable[[int], object]:
    """glibc's `malloc_trim`, which others do not need or have."""
    with contextlib.suppress(AttributeError, OSError):
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
        return found
    return lambda _: None
