"""Old history goes when it is asked to, and only then."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.store import MemoryStore, Retention, Store
from sandbox_agent.store.sqlite.writer import Pace
from support.store_words import KEEP_ALL, STREAM, committed, query, read_all, session, sqlite_store
from support.waiting import until

BUSY = Pace(linger=0.0, retention_interval=0.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def oldest_kept(store: Store, stream: StreamKey = STREAM) -> int:
    entries = await store.read(stream, after=0, limit=1)
    return entries[0].sequence if entries else 0


async def until_kept(store: Store, is_right: Callable[[int], bool], stream: StreamKey = STREAM) -> int:
    """Go on writing elsewhere until retention has moved the oldest sequence that is kept."""
    async with asyncio.timeout(30):
        while not is_right(found := await oldest_kept(store, stream)):
            store.append(StreamKey("session:mock:tick"), "server", [b"x"])
            await committed(store)
            await asyncio.sleep(0)
    return found


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_entries_past_the_age_go_and_sequences_go_on(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    store: Store = MemoryStore(clock=clock, retention=Retention(age=60.0, bytes=None))
    if kind == "sqlite":
        store = sqlite_store(tmp_path / "history.db", clock=clock, retention=Retention(age=60.0, bytes=None), pace=BUSY)
    await store.open()
    store.append(STREAM, "agent", [b"old"] * 5)
    await committed(store)
    clock.now += 50
    store.append(STREAM, "agent", [b"new"] * 5)
    await committed(store)
    assert await oldest_kept(store) == 1
    clock.now += 20
    assert await until_kept(store, lambda oldest: oldest != 1) == 6
    assert [entry.sequence for entry in await read_all(store)] == [6, 7, 8, 9, 10]
    clock.now += 1000
    await until_kept(store, lambda oldest: oldest == 0)
    assert store.append(STREAM, "agent", [b"newest"]) == 11
    await store.close()


async def test_memory_past_the_size_loses_the_oldest() -> None:
    store = MemoryStore(retention=Retention(age=None, bytes=1000))
    other = StreamKey("session:mock:two")
    for _ in range(20):
        store.append(STREAM, "agent", [b"x" * 100])
        store.append(other, "agent", [b"x" * 100])
    assert [entry.sequence for entry in await read_all(store)] == [16, 17, 18, 19, 20]
    assert [entry.sequence for entry in await read_all(store, other)] == [16, 17, 18, 19, 20]
    await store.drop(other)
    store.append(STREAM, "agent", [b"x" * 100] * 5)
    assert [entry.sequence for entry in await read_all(store)] == list(range(16, 26))


async def test_a_database_past_the_size_loses_ended_sessions_first(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    first = sqlite_store(path, pace=Pace(linger=0.0))
    await first.open()
    running, ended = session("running", updated=1.0), session("ended", updated=2.0, ended=2.0)
    first.put_session(running)
    first.put_session(ended)
    for number in range(60):
        for record in (running, ended):
            first.append(record.key.stream, "agent", [os.urandom(20_000)])
        if number % 10 == 0:
            await committed(first)
    await first.close()
    limit = int(path.stat().st_size * 0.75)
    store = sqlite_store(path, retention=Retention(age=None, bytes=limit), pace=BUSY)
    await store.open()
    await until_kept(store, lambda oldest: oldest != 1, ended.key.stream)
    assert await oldest_kept(store, running.key.stream) == 1
    assert store.last_sequence(ended.key.stream) == 60
    assert len(await read_all(store, running.key.stream)) == 60
    await store.close()
    smaller = sqlite_store(path, retention=Retention(age=None, bytes=limit // 4), pace=BUSY)
    await smaller.open()
    assert await until_kept(smaller, lambda oldest: oldest != 1, running.key.stream) > 1
    await smaller.close()


async def test_nothing_goes_unless_asked(tmp_path: Path) -> None:
    clock = Clock()
    for store in (
        MemoryStore(clock=clock, retention=KEEP_ALL),
        sqlite_store(tmp_path / "history.db", clock=clock, pace=BUSY),
    ):
        await store.open()
        store.append(STREAM, "agent", [b"old"])
        await committed(store)
        clock.now += 1e9
        store.append(STREAM, "agent", [b"new"])
        await committed(store)
        assert len(await read_all(store)) == 2
        await store.close()


async def test_the_file_shrinks_after_much_was_dropped(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    stream = StreamKey("connection:c")
    store = sqlite_store(path, pace=BUSY)
    await store.open()
    for _ in range(30):
        store.append(stream, "agent", [os.urandom(1_000_000)])
    await committed(store)

    def pages() -> int:
        ((count,),) = query(path, "PRAGMA page_count")
        assert isinstance(count, int)
        return count

    assert pages() > 3000
    await store.drop(stream)
    await until(lambda: pages() < 2500)
    await store.close()
