"""Those who read `/event` and `/global/event`: each has a queue of its own, bounded in bytes."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import Any

import msgspec

from sandbox_agent.history.opencode import Told
from sandbox_agent.history.opencode.ids import event_id
from sandbox_agent.http.doors.opencode.views import PROJECT

_HANDED_ON = 0.2
"""Seconds that an answer waits for readers that do not take what came before it."""
_encode = msgspec.json.Encoder().encode


class Follower:
    """One reader. With `directory` it hears of that directory alone, and in the form of `/event`."""

    def __init__(self, directory: str | None, *, is_global: bool, limit: int) -> None:
        self.directory = directory
        self.is_global = is_global
        self.is_behind = False
        """It did not keep up: its stream ends, and it comes back."""
        self.over = asyncio.Event()
        self._limit = limit
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._came = asyncio.Event()
        self._taken = asyncio.Event()

    @property
    def is_done(self) -> bool:
        return self.is_behind or (self.over.is_set() and not self._waiting)

    @property
    def has_taken_all(self) -> bool:
        return not self._waiting

    def has_room(self, size: int) -> bool:
        """Whether so much fits without crowding out what happens meanwhile."""
        return self._bytes + size <= self._limit // 2

    def put(self, line: bytes) -> None:
        if self.is_behind:
            return
        if self._waiting and self._bytes + len(line) > self._limit:
            self.is_behind = True
            self._waiting.clear()
            self.end()
        else:
            self._waiting.append(line)
            self._bytes += len(line)
        self._came.set()

    def end(self) -> None:
        self.over.set()
        self._came.set()

    async def take(self, *, wait: float) -> bytes:
        """What came, as SSE, waiting up to `wait` seconds for it; empty when nothing did."""
        if not self._waiting:
            self._taken.set()
            self._came.clear()
            if self.is_done:
                return b""
            try:
                async with asyncio.timeout(wait):
                    await self._came.wait()
            except TimeoutError:
                return b""
        taken, self._waiting, self._bytes = self._waiting, [], 0
        self._taken.clear()
        return b"".join(taken)

    async def taken(self) -> None:
        if self._waiting:
            self._taken.clear()
            await self._taken.wait()


class Followers:
    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._all: set[Follower] = set()
        self._numbers = count(1)

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, directory: str | None, *, is_global: bool) -> Follower:
        follower = Follower(directory, is_global=is_global, limit=self._limit)
        self._all.add(follower)
        return follower

    def remove(self, follower: Follower) -> None:
        self._all.discard(follower)

    def tell(self, directory: str, told: list[Told]) -> None:
        """Tell everybody who wants to hear of this directory."""
        if not self._all:
            return
        for type_, properties in joined(told):
            payload = self.payload(type_, properties)
            plain, wrapped = b"data: %b\n\n" % payload, _wrapped(directory, payload)
            for follower in self._all:
                if follower.is_global:
                    follower.put(wrapped)
                elif follower.directory in (None, directory):
                    follower.put(plain)

    def tell_one(self, follower: Follower, directory: str, groups: list[list[Told]]) -> None:
        """Tell one of them the first groups that are not too much, each as a whole."""
        if not follower.is_global and follower.directory not in (None, directory):
            return
        for told in groups:
            payloads = [self.payload(type_, properties) for type_, properties in told]
            if not follower.has_room(sum(map(len, payloads))):
                return
            for payload in payloads:
                follower.put(_wrapped(directory, payload) if follower.is_global else b"data: %b\n\n" % payload)

    def line(self, follower: Follower, type_: str) -> bytes:
        """An event about the server itself, for one follower."""
        payload = self.payload(type_, {})
        return b'data: {"payload":%b}\n\n' % payload if follower.is_global else b"data: %b\n\n" % payload

    def payload(self, type_: str, properties: dict[str, Any]) -> bytes:
        return _encode({"id": event_id(next(self._numbers), time.time()), "type": type_, "properties": properties})

    async def handed_on(self) -> None:
        """Return when all have taken what they were told, or after a moment: so that an answer does not overtake."""
        waiting = [follower for follower in self._all if not follower.has_taken_all and not follower.is_behind]
        if waiting:
            try:
                async with asyncio.timeout(_HANDED_ON):
                    await asyncio.gather(*(follower.taken() for follower in waiting))
            except TimeoutError:
                return


def _wrapped(directory: str, payload: bytes) -> bytes:
    return b'data: {"directory":%b,"project":"%b","payload":%b}\n\n' % (_encode(directory), PROJECT.encode(), payload)


def joined(told: list[Told]) -> list[Told]:
    """The same with neighbouring deltas of one part made one."""
    made: list[Told] = []
    pieces: list[str] = []
    for one in told:
        if one.type == "message.part.delta":
            if pieces and made[-1].properties["partID"] == one.properties["partID"]:
                pieces.append(one.properties["delta"])
                continue
            _close(made, pieces)
            pieces = [one.properties["delta"]]
        else:
            _close(made, pieces)
            pieces = []
        made.append(one)
    _close(made, pieces)
    return made


def _close(made: list[Told], pieces: list[str]) -> None:
    if len(pieces) > 1:
        last = made[-1]
        made[-1] = Told(last.type, {**last.properties, "delta": "".join(pieces)})
