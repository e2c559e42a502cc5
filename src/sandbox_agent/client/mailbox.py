"""Envelopes on their way to whoever iterates over them."""

from __future__ import annotations

import asyncio
from collections import deque

from sandbox_agent.client.updates import Envelope

FULL = 16_384
"""A mailbox that holds this many makes the whole connection wait until it is read: the server keeps what comes."""


class Mailbox:
    def __init__(self) -> None:
        self._held: deque[Envelope] = deque()
        self._changed = asyncio.Event()
        self._is_closed = False
        self._has_room = asyncio.Event()
        self._has_room.set()

    def put(self, envelope: Envelope) -> None:
        if self._is_closed:
            return
        self._held.append(envelope)
        self._changed.set()
        if len(self._held) >= FULL:
            self._has_room.clear()

    def close(self) -> None:
        """What is held can still be taken."""
        self._is_closed = True
        self._changed.set()

    def abandon(self) -> None:
        """Nobody reads any more."""
        self._held.clear()
        self._has_room.set()
        self.close()

    async def take(self) -> Envelope | None:
        """The next envelope; None when it is closed and empty."""
        while not self._held:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        envelope = self._held.popleft()
        if len(self._held) <= FULL // 2:
            self._has_room.set()
        return envelope

    async def room(self) -> None:
        await self._has_room.wait()
