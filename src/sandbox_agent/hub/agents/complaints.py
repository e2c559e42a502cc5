"""A limit on how often one agent may have something told: a few at once, then some a second, the rest in one sum."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_BURST = 20
_PER_SECOND = 5.0


class Complaints:
    """`tell_skipped` is called with the number of those that were not admitted, once a second while there are any."""

    def __init__(self, tell_skipped: Callable[[int], None]) -> None:
        self._tell_skipped = tell_skipped
        self._left = float(_BURST)
        self._at = 0.0
        self._skipped = 0
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, count: int) -> bool:
        """Whether one that stands for `count` lines may be told now."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._left = min(float(_BURST), self._left + (now - self._at) * _PER_SECOND)
        self._at = now
        if self._left >= 1.0:
            self._left -= 1.0
            return True
        self._skipped += count
        if self._timer is None:
            self._timer = loop.call_later(1.0, self._sum_up)
        return False

    def _sum_up(self) -> None:
        count, self._skipped, self._timer = self._skipped, 0, None
        self._tell_skipped(count)
