"""What every store does, whichever it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from sandbox_agent.core.ids import AgentId, StreamKey
from sandbox_agent.errors import InvalidParams
from sandbox_agent.store import MemoryStore, SessionFilter, Store
from sandbox_agent.store.sqlite.writer import Pace
from support.store_words import (
    ANY,
    KEEP_ALL,
    KEY,
    STREAM,
    committed,
    lines_of,
    numbered,
    postgres_store,
    read_all,
    session,
    sqlite_store,
)

EAGER = Pace(linger=0.0)
LAZY = Pace(linger=30.0, plenty_bytes=1 << 30)


@pytest.fixture(params=["memory", "sqlite", "sqlite-eager", "sqlite-pending", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """`eager` commits at once, `pending` holds everything back: reads must not show the difference."""
    chosen: Store
    if request.param == "memory":
        chosen = MemoryStore(retention=KEEP_ALL)
    elif request.param == "postgresql":
        chosen = postgres_store(request.getfixturevalue("postgres").new_database(), tmp_path)
    else:
        pace = {"sqlite": Pace(), "sqlite-eager": EAGER, "sqlite-pending": LAZY}[request.param]
        chosen = sqlite_store(tmp_path / "history.db", pace=pace)
    await chosen.open()
    yield chosen
    await chosen.close()


@pytest.mark.promise("P-history-2")
async def test_appends_are_numbered_from_one_without_holes(store: Store) -> None:
    assert store.last_sequence(STREAM) == 0
    assert store.append(STREAM, "client", numbered(3)) == 1
    assert store.append(STREAM, "agent", numbered(2, start=4)) == 4
    assert store.last_sequence(STREAM) == 5
    entries = await read_all(store)
    assert [entry.sequence for entry in entries] == [1, 2, 3, 4, 5]
    assert [entry.source for entry in entries] == ["client"] * 3 + ["agent"] * 2
    assert [entry.envelope for entry in entries] == numbered(5)
    assert all(entry.time > 1_700_000_000 for entry in entries)


async def test_lines_that_wait_for_a_flush_have_their_places_and_can_be_read(store: Store) -> None:
    other = StreamKey("session:mock:two")
    assert store.append(STREAM, "client", numbered(2), flush=False) == 1
    assert store.append(other, "agent", numbered(1), flush=False) == 1
    assert store.append(STREAM, "agent", numbered(1, start=3), flush=False) == 3
    assert store.append(STREAM, "agent", numbered(1, start=4), flush=False) == 4
    assert store.last_sequence(STREAM) == 4
    entries = await read_all(store)
    assert [(entry.sequence, entry.source) for entry in entries] == [
        (1, "client"),
        (2, "client"),
        (3, "agent"),
        (4, "agent"),
    ]
    assert [entry.envelope for entry in entries] == numbered(4)
    assert await lines_of(store, other) == numbered(1)
    store.append(STREAM, "agent", numbered(1, start=5), flush=False)
    await store.drop(STREAM)
    store.flush()
    assert await lines_of(store) == []
    assert store.append(STREAM, "agent", [b"anew"]) == 1


async def test_acquiring_a_stream_tells_where_it_ends_and_changes_nothing(store: Store) -> None:
    new = await store.acquire(STREAM)
    assert new.last == 0
    store.append(STREAM, "agent", numbered(3))
    again = await store.acquire(STREAM)
    assert (again.epoch, again.last) == (new.epoch, 3)
    assert store.lost(STREAM) is None
    assert store.append(STREAM, "agent", numbered(1, start=4)) == 4
    assert await lines_of(store) == numbered(4)


async def test_a_stream_is_new_until_it_has_an_entry(store: Store) -> None:
    stream = StreamKey("session:mock:0198c6b2-3e5f-7c11-9d1a-5a0b6f1c2d3e")
    assert store.is_new(stream)
    assert await store.newest(stream) == 0
    store.append(stream, "agent", numbered(2))
    assert not store.is_new(stream)
    assert await store.newest(stream) == 2


async def test_what_waits_for_safety_is_called_in_order_and_once(store: Store) -> None:
    called: list[int] = []
    for number in range(20):
        store.append(STREAM, "agent", numbered(1, start=number + 1), flush=False)
        store.once_safe(lambda number=number: called.append(number))  # type: ignore[misc]
    await store.safe()
    assert called == list(range(20))
    store.once_safe(lambda: called.append(20))
    assert called[-1] == 20
    assert await lines_of(store) == numbered(20)


async def test_an_empty_append_changes_nothing(store: Store) -> None:
    store.append(STREAM, "agent", numbered(2))
    assert store.append(STREAM, "agent", []) == 3
    assert store.last_sequence(STREAM) == 2
    assert await lines_of(store) == numbered(2)


async def test_lines_come_back_byte_for_byte(store: Store) -> None:
    lines = [b"", b"\xff\xfe not utf-8", b'{"a":"\\u0000"}', b"\x00" * 100, "ü€😀".encode()]
    store.append(STREAM, "server", lines)
    assert await lines_of(store) == lines


async def test_streams_do_not_mix(store: Store) -> None:
    other = StreamKey("session:mock:two")
    for number in range(20):
        store.append(STREAM if number % 2 else other, "agent", [b"%d" % number])
    assert await lines_of(store) == [b"%d" % number for number in range(1, 20, 2)]
    assert await lines_of(store, other) == [b"%d" % number for number in range(0, 20, 2)]


async def test_read_begins_after_and_ends_at_the_limit(store: Store) -> None:
    store.append(STREAM, "agent", numbered(10))
    store.append(STREAM, "agent", numbered(10, start=11))
    assert [entry.sequence for entry in await store.read(STREAM, after=7, limit=5)] == [8, 9, 10, 11, 12]
    assert await store.read(STREAM, after=20, limit=5) == []
    assert await store.read(STREAM, after=999, limit=5) == []
    assert await store.read(STREAM, after=0, limit=0) == []
    assert await store.read(StreamKey("session:mock:none"), after=0, limit=5) == []


async def test_read_stops_before_the_byte_limit_but_gives_at_least_one(store: Store) -> None:
    store.append(STREAM, "agent", [b"x" * 100] * 10)
    assert len(await store.read(STREAM, after=0, limit=100, max_bytes=250)) == 2
    assert len(await store.read(STREAM, after=2, limit=100, max_bytes=200)) == 2
    assert len(await store.read(STREAM, after=0, limit=100, max_bytes=1)) == 1


async def test_an_append_of_many_megabytes_reads_back_in_pages(store: Store) -> None:
    lines = [b"%d:" % number + b"y" * 3000 for number in range(2000)]
    store.append(STREAM, "agent", lines)
    entries = await read_all(store, limit=10_000)
    assert [entry.envelope for entry in entries] == lines
    assert [entry.sequence for entry in entries] == list(range(1, 2001))


async def test_a_dropped_stream_begins_anew(store: Store) -> None:
    store.append(STREAM, "agent", numbered(3))
    await store.drop(STREAM)
    assert store.last_sequence(STREAM) == 0
    assert await read_all(store) == []
    assert store.append(STREAM, "agent", [b"new"]) == 1
    assert await lines_of(store) == [b"new"]
    await store.drop(StreamKey("session:mock:never"))


async def test_reads_that_run_while_lines_are_appended_miss_and_repeat_nothing(store: Store) -> None:
    total = 4000

    async def follow() -> list[int]:
        seen: list[int] = []
        while len(seen) < total:
            page = await store.read(STREAM, after=seen[-1] if seen else 0, limit=97)
            seen += [entry.sequence for entry in page]
            await asyncio.sleep(0)
        return seen

    followers = [asyncio.create_task(follow()) for _ in range(3)]
    for start in range(0, total, 8):
        store.append(STREAM, "agent", numbered(8, start=start + 1))
        await asyncio.sleep(0)
    for seen in await asyncio.gather(*followers):
        assert seen == list(range(1, total + 1))


async def test_a_read_that_meets_a_drop_never_mixes_the_old_stream_with_the_new(store: Store) -> None:
    for generation in range(150):
        store.append(STREAM, "agent", [b"%d" % generation] * 5)
        await asyncio.sleep(0.001 if generation % 3 else 0)
        store.append(STREAM, "agent", [b"%d" % generation] * 5)
        reading = [asyncio.create_task(store.read(STREAM, after=0, limit=100)) for _ in range(3)]
        await asyncio.sleep(0)
        await store.drop(STREAM)
        store.append(STREAM, "agent", [b"%d" % (generation + 1)] * 2)
        for entries in await asyncio.gather(*reading):
            of = {entry.envelope for entry in entries}
            assert len(of) == 1
            assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
        await store.drop(STREAM)


async def test_a_session_record_comes_back_as_it_was_put(store: Store) -> None:
    record = session(
        alias="mine", cwd="/w", title="ü", mode="m", model="x", permission_mode="ask", mcp_servers=[{"a": 1}],
        skills=["s"], metadata={"big": 10**30, "n": None}, offered={"modes": []}, created=1.5, updated=2.5,
        ended=3.5, ended_reason="done",
    )  # fmt: skip
    store.put_session(record)
    assert await store.get_session(KEY) == record
    assert await store.get_session(session("two").key) is None


async def test_what_is_put_cannot_be_changed_from_outside(store: Store) -> None:
    record = session(title="before")
    store.put_session(record)
    record.title = "after"
    found = await store.get_session(KEY)
    assert found is not None
    assert found.title == "before"
    found.title = "after"
    again = await store.get_session(KEY)
    assert again is not None
    assert again.title == "before"


async def test_the_event_count_is_the_last_sequence_of_the_history(store: Store) -> None:
    store.put_session(session())
    store.append(KEY.stream, "agent", numbered(7))
    found = await store.get_session(KEY)
    listed = (await store.list_sessions(ANY)).sessions
    named = await store.find_sessions("one")
    assert found is not None
    assert [record.event_count for record in (found, *listed, *named)] == [7, 7, 7]


async def test_sessions_are_found_by_id_and_by_alias_over_all_agents(store: Store) -> None:
    store.put_session(session("one", agent="a"))
    store.put_session(session("one", agent="b"))
    store.put_session(session("two", agent="a", alias="one"))
    store.put_session(session("three", agent="a", alias="else"))
    found = await store.find_sessions("one")
    assert {(record.agent, record.session_id) for record in found} == {
        ("a", "one"),
        ("b", "one"),
        ("a", "two"),
    }
    store.put_session(session("two", agent="a", alias=None))
    assert len(await store.find_sessions("one")) == 2
    assert await store.find_sessions("nobody") == []


async def test_the_list_is_newest_first_and_filtered(store: Store) -> None:
    for number in range(12):
        store.put_session(
            session(
                f"s{number:02}", agent="ab"[number % 2], updated=float(number // 2), cwd=f"/{number % 3}",
                ended=1.0 if number < 4 else None,
            )
        )  # fmt: skip
    everything = (await store.list_sessions(ANY)).sessions
    positions = [(record.updated, record.agent, record.session_id) for record in everything]
    assert positions == sorted(positions, reverse=True)
    assert len(positions) == 12

    async def names(**filters: object) -> set[str]:
        page = await store.list_sessions(SessionFilter(**filters))  # type: ignore[arg-type]
        return {record.session_id for record in page.sessions}

    assert await names(agent=AgentId("a")) == {f"s{number:02}" for number in range(0, 12, 2)}
    assert await names(cwd="/1") == {"s01", "s04", "s07", "s10"}
    assert await names(is_ended=True) == {"s00", "s01", "s02", "s03"}
    assert await names(is_ended=False, agent=AgentId("b"), cwd="/1") == {"s07"}


async def test_a_strange_cursor_is_refused(store: Store) -> None:
    for cursor in ("", "nonsense", "e30", "ü", "W10="):
        with pytest.raises(InvalidParams):
            await store.list_sessions(ANY, cursor=cursor)


async def test_paging_shows_each_of_2000_sessions_once_while_they_move(store: Store) -> None:
    clock = 1000.0
    for number in range(2000):
        store.put_session(session(f"s{number}", updated=float(number % 500)))
    shown: list[str] = []
    cursor: str | None = None
    for step in range(1000):
        page = await store.list_sessions(ANY, cursor=cursor, limit=50)
        shown += [record.session_id for record in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            break
        for number in range(step, 2000, 97):
            clock += 1
            store.put_session(session(f"s{number}", updated=clock))
        store.put_session(session(f"new{step}", updated=clock))
        await asyncio.sleep(0)
    assert cursor is None
    assert sorted(shown) == sorted(f"s{number}" for number in range(2000))


async def test_paging_shows_each_session_once_when_updates_come_during_a_page(store: Store) -> None:
    names = [f"s{number}" for number in range(300)]
    for number, name in enumerate(names):
        store.put_session(session(name, updated=float(number)))
    is_done = False

    async def move() -> None:
        clock = 1000.0
        while not is_done:
            for name in names[::7]:
                clock += 1
                store.put_session(session(name, updated=clock))
                await asyncio.sleep(0)

    mover = asyncio.create_task(move())
    for _ in range(5):
        shown: list[str] = []
        cursor: str | None = None
        while True:
            page = await store.list_sessions(ANY, cursor=cursor, limit=20)
            shown += [record.session_id for record in page.sessions]
            cursor = page.next_cursor
            await asyncio.sleep(0)
            if cursor is None:
                break
        assert sorted(shown) == sorted(names)
    is_done = True
    await mover


async def test_turns_are_unknown_then_running_then_finished(store: Store) -> None:
    assert await store.get_turn(KEY, "t1") == (False, None)
    store.put_turn(KEY, "t1", None)
    assert await store.get_turn(KEY, "t1") == (True, None)
    store.put_turn(KEY, "t1", b'{"result":{}}')
    assert await store.get_turn(KEY, "t1") == (True, b'{"result":{}}')
    assert await store.get_turn(session("two").key, "t1") == (False, None)


async def test_a_deleted_session_is_gone_with_history_and_turns(store: Store) -> None:
    for _ in range(2):
        store.put_session(session(alias="mine"))
        store.put_turn(KEY, "t1", b"{}")
        store.append(KEY.stream, "agent", numbered(5))
        await store.delete_session(KEY)
        assert await store.get_session(KEY) is None
        assert await store.find_sessions("mine") == []
        assert (await store.list_sessions(ANY)).sessions == []
        assert await store.get_turn(KEY, "t1") == (False, None)
        assert store.last_sequence(KEY.stream) == 0
        assert await read_all(store, KEY.stream) == []
    store.put_turn(KEY, "t2", b"2")
    assert await store.get_turn(KEY, "t1") == (False, None)
    assert await store.get_turn(KEY, "t2") == (True, b"2")


async def test_a_healthy_store_says_so(store: Store) -> None:
    store.append(STREAM, "agent", numbered(3))
    health = store.health()
    assert (health.state, health.problem, health.lost_entries) == ("ok", None, 0)


async def test_times_never_run_backwards_within_a_stream(store: Store) -> None:
    for _ in range(10):
        store.append(STREAM, "agent", numbered(2))
    times = [entry.time for entry in await read_all(store)]
    assert all(earlier <= later for earlier, later in pairwise(times))


async def test_what_was_committed_reads_like_what_is_pending(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "history.db", pace=EAGER)
    await store.open()
    store.append(STREAM, "agent", numbered(10))
    pending = await read_all(store)
    await committed(store)
    assert await read_all(store) == pending
    await store.close()
