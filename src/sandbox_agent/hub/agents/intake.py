"""What an agent says, handled a share at a time: no agent keeps the others waiting, and none outruns the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from sandbox_agent.core.lines import OversizedLine
from sandbox_agent.process import AgentProcess
from sandbox_agent.process.agent_process import Lines
from sandbox_agent.store.base import Store

_SHARE_SECONDS = 0.005
"""How long the lines of one agent may keep everybody else waiting, in one turn of the loop."""
_SHORTEST = 1e-6
"""Seconds that a share takes at least, whatever a coarse clock says."""
_LEAST, _MOST = 64, 8192
"""Lines of a share. Fewer say little about what a line costs."""
_BACKLOG_HIGH, _BACKLOG_LOW = 64 << 20, 16 << 20
"""Bytes waiting for the store at which agents are made to wait, and at which they go on."""


class Intake:
    """While lines wait here, the agent's stdout rests: so what waits is bounded by one read of it."""

    def __init__(self, handle: Callable[[Lines], None], store: Store) -> None:
        self.process: AgentProcess | None = None
        self._handle = handle
        self._store = store
        self._share = 1024
        """So many of this agent's lines take about `_SHARE_SECONDS`, as far as we have seen."""
        self._waiting: list[bytes | OversizedLine] = []
        self._done = 0
        """How many of those that wait have had their turn: taken out together, in the end."""
        self._is_sharing = False
        self._draining: asyncio.Task[None] | None = None

    def take(self, lines: Lines) -> None:
        if not self._waiting and len(lines) <= self._share:
            self._handle_timed(lines)
        else:
            self._waiting += lines
            if not self._is_sharing:
                self._is_sharing = True
                self._pause()
                self._next_share()
        if self._draining is None and self._store.backlog() > _BACKLOG_HIGH:
            self._draining = asyncio.get_running_loop().create_task(self._let_store_catch_up())

    def finish(self) -> None:
        """The process has exited: its last words come before its end."""
        while self._waiting:
            self._handle_share()
        self.process = None

    def _next_share(self) -> None:
        self._handle_share()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next_share)
        else:
            self._is_sharing = False
            self._resume()

    def _handle_share(self) -> None:
        lines = self._waiting[self._done : self._done + self._share]
        self._done += len(lines)
        if self._done == len(self._waiting):
            self._waiting, self._done = [], 0
        self._handle_timed(lines)

    def _handle_timed(self, lines: Lines) -> None:
        begun = time.perf_counter()
        self._handle(lines)
        if len(lines) >= _LEAST:
            taken = max(time.perf_counter() - begun, _SHORTEST)
            fitting = int(len(lines) * _SHARE_SECONDS / taken)
            # Fewer at once, more by and by: one costly kind of line must not hide among cheap ones.
            self._share = max(_LEAST, min(fitting, 2 * self._share, _MOST))

    async def _let_store_catch_up(self) -> None:
        """The store is the only thing that may slow an agent down: memory stays bounded, and nothing is lost."""
        self._pause()
        try:
            while self._store.backlog() > _BACKLOG_LOW and self.process is not None:  # noqa: ASYNC110 - a thread empties it
                await asyncio.sleep(0.01)
        finally:
            self._draining = None
            self._resume()

    def _pause(self) -> None:
        if self.process is not None:
            self.process.pause_reading()

    def _resume(self) -> None:
        if self.process is not None and not self._is_sharing and self._draining is None:
            self.process.resume_reading()
