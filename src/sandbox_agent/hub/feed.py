"""The feed: every change that somebody may want to watch, over all sessions, agents and installs, in one order.

Positions are `<boot>-<number>`. Whoever resumes within what is kept misses nothing; one who comes from another run of
the server, or too late, is told to list anew. Nothing is kept, and nothing costs anything, before somebody follows.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.errors import InvalidParams

RESET = "reset"
"""The type of the notice that something was missed."""


class Change(msgspec.Struct, frozen=True):
    """One change: `body` is a JSON object with its `type`."""

    position: str
    kind: str
    body: bytes


class Feed:
    def __init__(self, *, kept_bytes: int) -> None:
        self.kept_bytes = kept_bytes
        self._boot = secrets.token_hex(4)
        self._kept: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._followers: list[Callable[[Change], None]] = []
        self._is_kept = False
        self._readers: set[FeedReader] = set()
        self.is_over = False

    @property
    def position(self) -> str:
        return f"{self._boot}-{self._last}"

    @property
    def is_followed(self) -> bool:
        return bool(self._followers)

    def tell(self, kind: str, describe: Callable[[], dict[str, Any]]) -> None:
        """`describe` is called only if somebody may read what it gives."""
        if not self._is_kept:
            return
        body = frames.to_json({"type": kind, **describe()})
        self._last += 1
        self._kept.append((kind, body))
        self._bytes += len(body)
        while self._bytes > self.kept_bytes and len(self._kept) > 1:
            self._bytes -= len(self._kept.popleft()[1])
        change = Change(self.position, kind, body)
        for follower in list(self._followers):
            follower(change)

    def read(self, after: str | None, *, limit: int) -> FeedReader:
        """The changes in batches; close it. Raises InvalidParams."""
        reader = FeedReader(self, after, limit=limit)
        self._readers.add(reader)
        return reader

    def left(self, reader: FeedReader) -> None:
        self._readers.discard(reader)

    def follow(
        self, after: str | None, follower: Callable[[Change], None], *, most: int | None = None
    ) -> Callable[[], None]:
        """Call `follower` with what came after that position, at once, then with every change until the end of it.

        None begins now. If more than `most` came, one notice takes their place. Gives the function that ends it.
        Raises InvalidParams for what was never a position."""
        missed = self._since(after)
        if most is not None and len(missed) > most:
            missed = [self.reset()]
        self._is_kept = True
        self._followers.append(follower)
        for change in missed:
            follower(change)
        return lambda: self._followers.remove(follower) if follower in self._followers else None

    def reset(self) -> Change:
        """What one is told who has missed something: list anew, and go on from here."""
        return Change(self.position, RESET, frames.to_json({"type": RESET}))

    def close(self) -> None:
        """The server goes down: whoever reads is told so."""
        self.is_over = True
        for reader in self._readers:
            reader.wake()

    def _since(self, after: str | None) -> list[Change]:
        if after is None:
            return []
        boot, _, digits = after.rpartition("-")
        if not boot or not digits.isascii() or not digits.isdigit() or len(digits) > 20:
            raise InvalidParams(f"{after[:80]!r} is not a position of the feed")
        number, oldest = int(digits), self._last - len(self._kept)
        if boot != self._boot or number > self._last or number < oldest:
            return [self.reset()]
        fresh = list(self._kept)[number - oldest :]
        return [Change(f"{self._boot}-{at}", kind, body) for at, (kind, body) in enumerate(fresh, number + 1)]


class FeedReader:
    """The feed in batches, as an event stream takes it. It holds a bounded number: who lags is told to reset."""

    def __init__(self, feed: Feed, after: str | None, *, limit: int) -> None:
        self._feed = feed
        self._limit = limit
        self._waiting: list[Change] = []
        self._came = asyncio.Event()
        self._leave = feed.follow(after, self._take_in, most=limit)

    @property
    def is_over(self) -> bool:
        return self._feed.is_over and not self._waiting

    async def take(self, *, wait: float) -> list[Change]:
        """What came, waiting up to `wait` seconds for it."""
        if not self._waiting:
            self._came.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._came.wait()
            except TimeoutError:
                return []
        taken, self._waiting = self._waiting, []
        return taken

    def close(self) -> None:
        self._leave()
        self._feed.left(self)

    def wake(self) -> None:
        self._came.set()

    def _take_in(self, change: Change) -> None:
        if len(self._waiting) >= self._limit:
            self._waiting = [self._feed.reset()]
        else:
            self._waiting.append(change)
        self._came.set()
