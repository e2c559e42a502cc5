"""The connection of a door that reads histories itself: it asks and answers, and nothing is delivered to it."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.ids import SessionId, StreamKey
from sandbox_agent.hub.clients.connection import Connection


class ViewConnection(Connection):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.is_held = True
        """Its door keeps it open, though nobody reads it."""

    @property
    def is_used(self) -> bool:
        return self.is_held or super().is_used

    def deliver(self, session: SessionId | None, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        pass

    def deliver_own(self, session: SessionId | None, line: bytes) -> None:
        pass

    def deliver_own_lines(self, session: SessionId | None, lines: list[bytes]) -> None:
        pass
