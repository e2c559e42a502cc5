"""Updates of sessions that nobody knows yet: they may come before the answer that names the session."""

from __future__ import annotations

_OVERHEAD = 100
"""What an update that is held costs besides its bytes."""


class Early:
    """Holds them until the session is known, within a bound."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_session: dict[str, list[bytes]] = {}
        self._bytes = 0

    def hold(self, session: str, line: bytes) -> str | None:
        """Keep the line; gives the complaint about the first one that has no place."""
        size = len(line) + _OVERHEAD
        if self._bytes + size <= self._limit:
            self._bytes += size
            self._by_session.setdefault(session, []).append(line)
            return None
        if self._bytes > self._limit:
            return None
        self._bytes = self._limit + 1  # so that it is said once
        return f"over {self._limit} bytes of updates for unannounced sessions: dropped"

    def take(self, session: str) -> list[bytes]:
        """What came of this session, which is known now."""
        return self._by_session.pop(session, [])

    def drop(self) -> None:
        """No session is being made any more: the rest belongs to none."""
        self._by_session.clear()
        self._bytes = 0
