"""One who follows the feed: every change, in one order, resumed exactly, and everything that it should tell."""

from __future__ import annotations

import asyncio

import msgspec

from sandbox_agent.hub.feed import RESET, Change, Feed, FeedReader
from simulation.facts import Facts
from simulation.trace import Trace


class Watcher:
    """Begins when the server does, so that it misses no session that is made."""

    def __init__(self, feed: Feed, facts: Facts, trace: Trace, *, limit: int) -> None:
        self._feed = feed
        self._facts = facts
        self._trace = trace
        self._limit = limit
        self._before = {known.birth for known in facts.sessions}
        self._position = feed.position
        self._changes: dict[str, bytes] = {}
        self._made: set[tuple[str, str]] = set()
        self._has_missed = False
        self._reading: asyncio.Task[None] | None = None
        self.follow(0)

    def follow(self, back: int) -> None:
        """From where it was left, or from some changes before that."""
        self.leave()
        boot, _, number = self._position.rpartition("-")
        oldest = min((int(each.rpartition("-")[2]) for each in self._changes), default=int(number) + 1)
        self._position = f"{boot}-{max(int(number) - back, oldest - 1)}"
        reader = self._feed.read(self._position, limit=self._limit)
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))

    def leave(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def check(self) -> None:
        """Everything has come to its end, and the feed has been read to its end."""
        if self._position != self._feed.position:
            self._facts.fail("the feed tells everything", f"read to {self._position}, it is at {self._feed.position}")
        for known in self._facts.sessions:
            if known.birth not in self._before and (known.agent, known.name) not in self._made and not self._has_missed:
                self._facts.fail("the feed tells everything", f"nothing of {known.name} of {known.agent}")

    async def _read(self, reader: FeedReader) -> None:
        try:
            while not reader.is_over:
                for change in await reader.take(wait=10.0):
                    self._take(change)
        finally:
            reader.close()

    def _take(self, change: Change) -> None:
        self._trace.add("watcher", f"sees {change.position}", change.body)
        boot, _, number = self._position.rpartition("-")
        if change.kind == RESET:
            self._has_missed = True
            self._changes.clear()
        elif change.position != f"{boot}-{int(number) + 1}":
            self._facts.fail("the feed has no holes", f"{change.position} after {self._position}")
        elif self._changes.setdefault(change.position, change.body) != change.body:
            self._facts.fail("a position of the feed means one change", change.position)
        self._position = change.position
        body = msgspec.json.decode(change.body)
        if change.kind == "session.created":
            self._made.add((body["agent"], body["sessionId"]))
