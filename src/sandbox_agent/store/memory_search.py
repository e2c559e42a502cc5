"""Full-text search for a store in memory: indexed when somebody asks, and only what is new since the last time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from sandbox_agent.core.ids import SessionKey
from sandbox_agent.store.search import Findings, Kept, Lines, Query, SearchIndex


class Batch(NamedTuple):
    first: int
    time: float
    lines: Sequence[bytes]


class History(NamedTuple):
    """A session's history under a number that no other stream gets; `new` follows what was indexed before."""

    key: SessionKey
    number: int
    oldest: int
    new: list[Batch]


class MemorySearch:
    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._indexed: dict[int, int] = {}
        self._turn = asyncio.Lock()

    @property
    def turn(self) -> asyncio.Lock:
        """One question at a time: held from the look at what is new until it is indexed."""
        return self._turn

    def indexed(self, number: int) -> int:
        """The newest entry of a stream that was indexed."""
        return self._indexed.get(number, 0)

    async def find(self, histories: list[History], query: Query, *, limit: int, each: int) -> Findings:
        """Of these histories, which are all that there are."""
        return await asyncio.to_thread(self._find, histories, query, limit, each)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._indexed.clear()

    def _find(self, histories: list[History], query: Query, limit: int, each: int) -> Findings:
        index = self._index()
        kept = {history.number: Kept(history.key, history.oldest) for history in histories}
        for stream in list(index.streams()):
            found = kept.get(stream)
            while index.forget(stream, before=found.oldest if found else None):
                pass
        for history in histories:
            if history.new:
                index.add(history.number, _lines(history.new))
                self._indexed[history.number] = history.new[-1].first + len(history.new[-1].lines) - 1
        self._indexed = {number: last for number, last in self._indexed.items() if number in kept}
        return index.find(query, limit=limit, each=each, kept=kept.get)

    def _index(self) -> SearchIndex:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            SearchIndex(self._connection).create()
        return SearchIndex(self._connection)


def _lines(batches: list[Batch]) -> Lines:
    for batch in batches:
        for sequence, line in enumerate(batch.lines, batch.first):
            yield sequence, batch.time, line
