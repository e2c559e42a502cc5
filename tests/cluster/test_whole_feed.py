"""How one node gathers the feeds of others, with another node's side of a link played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox_agent.core import frames
from sandbox_agent.core.methods import STREAM_GAP
from sandbox_agent.errors import MalformedMessage, StoreError
from sandbox_agent.hub.cluster import feed as whole
from sandbox_agent.hub.cluster import wire
from sandbox_agent.hub.cluster.link import Listener
from sandbox_agent.hub.extensions.feed import CHANGED
from sandbox_agent.hub.feed import Change, Feed
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.store.postgres.directory import Peer
from sandbox_agent.store.postgres.leases import Node


class Other:
    """Node "b": a link to it, and what stands in the database of it."""

    def __init__(self) -> None:
        self.node = Node("a", 1)
        self.feed = Feed(kept_bytes=1 << 20)
        self.is_away = False
        self.looks = 0
        self.opened = 0
        self.listeners: dict[int, Listener] = {}
        self._leave: dict[int, Callable[[], None]] = {}

    async def others(self) -> list[Peer]:
        self.looks += 1
        if self.is_away:
            raise StoreError("the database is away")
        return [Peer("b", "http://b", is_alive=True, is_draining=False)]

    async def to(self, node: str) -> Other:
        return self

    def open(self, listener: Listener, introduce: Callable[[int], wire.Open]) -> int:
        self.opened += 1
        assert introduce(self.opened).right == 1  # to read
        self.listeners[self.opened] = listener
        return self.opened

    def post(self, message: bytes) -> None:
        head, body = wire.decode(message)
        assert isinstance(head, wire.Say)
        listener = self.listeners[head.channel]

        def tell(change: Change) -> None:
            members = {"id": change.position, **frames.members(change.body)}
            listener.told([], [frames.notification(CHANGED, members)])

        after = frames.decode(frames.params_of(body)).get("after")
        position = self.feed.position
        self._leave[head.channel] = self.feed.follow(after, tell)
        listener.told([], [frames.result(b"1", {"after": after or position})])

    def close_channel(self, channel: int) -> None:
        self._leave.pop(channel)()
        del self.listeners[channel]


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    tasks = Tasks()
    yield tasks
    tasks.cancel()


def gathering(other: Other, tasks: Tasks) -> whole.WholeFeed:
    links: Any = other
    directory: Any = other
    return whole.WholeFeed(Feed(kept_bytes=1 << 20), links, directory, tasks, every=0.01)


async def until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not done():
            await asyncio.sleep(0.01)


async def test_channels_are_changed_after_a_while_and_nothing_is_lost_or_told_twice(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "_CARRIED", 5)
    monkeypatch.setattr(whole, "_RETRY", 0.01)
    other = Other()
    feed = await gathering(other, tasks).opened()
    seen: list[Change] = []
    feed.follow(None, seen.append)
    for number in range(50):
        other.feed.tell("change", lambda: {"number": number})  # noqa: B023 - it is called at once
        await asyncio.sleep(0)
    await until(lambda: len(seen) == 50)
    assert [frames.decode(change.body) for change in seen] == [
        {"type": "change", "number": number, "node": "b"} for number in range(50)
    ]
    await until(lambda: other.opened > 2)
    assert len(other.listeners) <= 1


async def test_what_the_other_node_could_not_keep_is_told(tasks: Tasks) -> None:
    other = Other()
    feed = await gathering(other, tasks).opened()
    seen: list[Change] = []
    feed.follow(None, seen.append)
    other.listeners[1].told([], [frames.notification(STREAM_GAP, {"fromId": 1, "toId": 2})])
    assert [frames.decode(change.body) for change in seen] == [{"type": "reset", "node": "b"}]


@pytest.mark.parametrize("params", [{"id": 7, "type": "x"}, {"type": "x"}, {"id": "x-1"}, [], None])
async def test_what_is_no_change_ends_the_link(tasks: Tasks, params: Any) -> None:
    other = Other()
    await gathering(other, tasks).opened()
    with pytest.raises(MalformedMessage):
        other.listeners[1].told([], [frames.notification(CHANGED, params)])


async def test_who_follows_while_the_database_is_away_is_told_of_this_node_and_later_of_all(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "_PATIENCE", 0.05)
    other = Other()
    other.is_away = True
    seen: list[str] = []
    (await gathering(other, tasks).opened()).follow(None, lambda change: seen.append(change.kind))
    assert seen == []
    other.is_away = False
    await until(lambda: seen == ["reset"])
    other.feed.tell("change", dict)
    assert seen == ["reset", "change"]


async def test_others_are_followed_only_as_long_as_somebody_may_come_back(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "_GRACE", 0.1)
    other = Other()
    gathered = gathering(other, tasks)
    feed = await gathered.opened()
    leave = feed.follow(None, lambda change: None)
    other.feed.tell("change", dict)
    position = feed.position
    await until(lambda: other.looks > 20)  # twice the time that it would wait for nobody
    assert other.feed.is_followed
    leave()
    await until(lambda: not other.feed.is_followed)
    assert feed.is_over
    seen: list[str] = []
    (await gathered.opened()).follow(position, lambda change: seen.append(change.kind))
    assert seen == ["reset"]
    other.feed.tell("change", dict)
    assert seen == ["reset", "change"]
