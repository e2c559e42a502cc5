"""Short-lived secrets that the server gives out: single-use tickets, and the sessions of browsers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from sandbox_agent.core.users import OWNER, User

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
        self._until: dict[str, tuple[float, User]] = {}

    def issue(self, user: User = OWNER) -> str:
        """A name that stands for `user`."""
        now = self._clock()
        while self._until:
            oldest = next(iter(self._until))
            if self._until[oldest][0] > now and len(self._until) < self._limit:
                break
            del self._until[oldest]
        name = secrets.token_urlsafe(32)
        self._until[name] = now + self.lifetime, user
        return name

    def holder(self, name: str) -> User | None:
        """Whom it stands for, while it is good."""
        return self._in_time(self._until.get(name))

    def take(self, name: str) -> User | None:
        """Whom it stood for, if it was good; from now on it is not."""
        return self._in_time(self._until.pop(name, None))

    def _in_time(self, found: tuple[float, User] | None) -> User | None:
        return found[1] if found is not None and found[0] > self._clock() else None


def new_tickets() -> Expiring:
    return Expiring(lifetime=TICKET_SECONDS, limit=_TICKETS)


def new_browser_sessions() -> Expiring:
    return Expiring(lifetime=SESSION_SECONDS, limit=_SESSIONS)
