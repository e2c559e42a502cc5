"""How long to wait before the next try."""

from __future__ import annotations

import random
import time

_FIRST = 0.05
_LONGEST = 5.0


class Backoff:
    """Waits that double, with jitter, until `limit` seconds have passed since the first failure in a row."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._wait = _FIRST
        self._since: float | None = None

    def reset(self) -> None:
        self._wait = _FIRST
        self._since = None

    def next_wait(self) -> float | None:
        """Seconds to wait, or None when it is time to give up."""
        now = time.monotonic()
        self._since = self._since if self._since is not None else now
        if now - self._since > self._limit:
            return None
        wait, self._wait = self._wait, min(self._wait * 2, _LONGEST)
        return wait * random.uniform(0.5, 1.0)
