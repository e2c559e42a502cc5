"""Short-lived secrets that the server gives out: single-use tickets, and the sessions of browsers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

TICKET_SECONDS = 30.0
SESSION_SECONDS = 12 * 3600.0
_TICKETS = 1000
_SESSIONS = 1000


class Expiring:
    """Random names that are good until their time is up. The oldest makes room when there are too many."""

    def __init__(self, *, lifetime: float, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.lifetime = lifetime
        self._limit = limit
        self._clock = clock
        self._until: dict[str, float] = {}

    def issue(self) -> str:
        now = self._clock()
        while self._until:
            oldest = next(iter(self._until))
            if self._until[oldest] > now and len(self._until) < self._limit:
                break
            del self._until[oldest]
        name = secrets.token_urlsafe(32)
        self._until[name] = now + self.lifetime
        return name

    def is_good(self, name: str) -> bool:
        until = self._until.get(name)
        return until is not None and until > self._clock()

    def take(self, name: str) -> bool:
        """Whether it was good; from now on it is not."""
        until = self._until.pop(name, None)
        return until is not None and until > self._clock()


def new_tickets() -> Expiring:
    return Expiring(lifetime=TICKET_SECONDS, limit=_TICKETS)


def new_browser_sessions() -> Expiring:
    return Expiring(lifetime=SESSION_SECONDS, limit=_SESSIONS)
