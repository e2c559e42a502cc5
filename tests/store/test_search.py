"""Full-text search: what it finds, what it forgets, and what it makes of hostile questions and damaged files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.errors import InvalidParams, NotFound
from sandbox_agent.store import MemoryStore, Retention, Store
from sandbox_agent.store.search import Findings, Query
from sandbox_agent.store.sqlite.indexer import index_path
from sandbox_agent.store.sqlite.room import LEAST_BYTES
from sandbox_agent.store.sqlite.writer import Pace
from support.disk import FailingDisk
from support.store_words import KEEP_ALL, committed, session, sqlite_store
from support.waiting import until

EAGER = Pace(linger=0.0, retention_interval=0.05)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    chosen: Store = (
        MemoryStore(retention=KEEP_ALL)
        if request.param == "memory"
        else sqlite_store(tmp_path / "history.db", pace=EAGER)
    )
    await chosen.open()
    yield chosen
    await chosen.close()


async def test_words_are_found_in_prompts_messages_thoughts_and_titles_of_tools(store: Store) -> None:
    said(store, "one", prompt("Where is the crème brûlée?"), chunk("In the kit"), chunk("chen, cooling."))
    said(store, "two", thought("Perhaps a kitchen knife?"), tool("Read kitchen.py"), chunk("Nothing."))

    assert await sessions_with(store, "brulee") == ["one"]
    assert await sessions_with(store, "kitchen") == ["two", "one"]
    assert await sessions_with(store, "kitchen cooling") == ["one"]
    assert await sessions_with(store, '"kitchen cooling"') == ["one"]
    assert await sessions_with(store, '"cooling kitchen"') == []
    assert await sessions_with(store, "cool") == ["one"]

    both = await find(store, "kitchen")
    assert [(hit.kind, hit.sequence) for hit in both.sessions[0].hits] == [("tool", 2), ("thought", 1)]
    assert [(hit.kind, hit.sequence) for hit in both.sessions[1].hits] == [("message", 2)]


async def test_a_snippet_marks_what_was_looked_for(store: Store) -> None:
    said(store, "one", chunk("word " * 100 + "needle " + "word " * 100))
    (hits,) = (await find(store, "needle")).sessions
    parts = hits.hits[0].snippet
    assert [part.text for part in parts if part.is_match] == ["needle"]
    assert len("".join(part.text for part in parts)) < 200


async def test_a_message_that_goes_on_is_one_passage_and_is_found_whole(store: Store) -> None:
    said(store, "one", chunk("an unfin"))
    assert await sessions_with(store, "unfin") == ["one"]
    said(store, "one", chunk("ished sentence"), usage(), chunk(" goes on"))
    assert await sessions_with(store, '"unfinished sentence goes on"') == ["one"]
    (hits,) = (await find(store, "unfinished")).sessions
    assert len(hits.hits) == 1
    assert hits.more == 0


async def test_each_session_shows_a_few_passages_and_counts_the_others(store: Store) -> None:
    for number in range(5):
        said(store, "one", prompt(f"again {number}"))
    (hits,) = (await find(store, "again", each=2)).sessions
    assert [hit.sequence for hit in hits.hits] == [5, 4]
    assert hits.more == 3


async def test_more_sessions_than_were_asked_for_are_told_of(store: Store) -> None:
    for name in ("one", "two", "three"):
        said(store, name, prompt("the same"))
    found = await find(store, "same", limit=2)
    assert [hits.key.session for hits in found.sessions] == ["three", "two"]
    assert not (await store.search(Query.parse("same"), limit=2, each=3)).is_complete


async def test_a_deleted_session_is_gone_at_once_and_its_name_can_be_used_again(store: Store) -> None:
    said(store, "one", prompt("forget me"))
    assert await sessions_with(store, "forget") == ["one"]
    await store.delete_session(key("one"))
    assert (await store.search(Query.parse("forget"), limit=10, each=3)).sessions == []
    said(store, "one", prompt("remember me"))
    assert await sessions_with(store, "remember") == ["one"]
    assert await sessions_with(store, "forget") == []


@pytest.mark.parametrize(
    "text",
    'NEAR(a b)|a AND|"|"unclosed phrase|text:words|a* OR b*|^a|-a|{a}|a\0b|(((|\' OR 1=1 --|\ud800a|ناس 漢字'.split(
        "|"
    ),
)
async def test_nothing_that_somebody_types_is_an_error_of_ours(store: Store, text: str) -> None:
    said(store, "one", prompt("a NEAR b"))
    with contextlib.suppress(InvalidParams):
        await store.search(Query.parse(text), limit=10, each=3)


@pytest.mark.parametrize("text", ["", "   ", "!!! ---", "x" * 1_000_000])
def test_a_question_without_words_or_without_end_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(InvalidParams, match="q: "):
        Query.parse(text)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"null",
        b'{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"}}}',
        b'{"method":"session/update","params":{"update":{"sessionUpdate":7,"content":["_chunk"]}}}',
        b'{"method":"session/prompt","params":[]}',
        b'{"method":"session/prompt","params":{"prompt":"text"}}',
        b'{"method":["_chunk"]}',
        b"\xff_chunk",
        b'{"_chunk":' + b"[" * 100_000,
    ],
)
async def test_strange_lines_are_passed_over(store: Store, line: bytes) -> None:
    store.append(key("one").stream, "agent", [line])
    said(store, "one", chunk("needle"))
    assert await sessions_with(store, "needle") == ["one"]


async def test_half_a_surrogate_pair_does_not_hide_what_stands_beside_it(store: Store) -> None:
    line = b'{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":'
    said(store, "one", line + b'{"type":"text","text":"needle \\ud83d"}}}}')
    assert await sessions_with(store, "needle") == ["one"]


async def test_what_retention_removes_is_no_longer_found(tmp_path: Path) -> None:
    now = 1000.0
    pace = Pace(linger=0.0, retention_interval=0.0)
    store = sqlite_store(
        tmp_path / "history.db", pace=pace, retention=Retention(age=60.0, bytes=None), clock=lambda: now
    )
    await store.open()
    said(store, "one", prompt("ancient words"))
    assert await sessions_with(store, "words") == ["one"]
    now += 120.0
    said(store, "one", prompt("recent words"))
    async with asyncio.timeout(20):
        while await sessions_with(store, "ancient"):
            await asyncio.sleep(0.02)
        assert await sessions_with(store, "recent") == ["one"]
    await store.close()
    async with asyncio.timeout(20):  # and leaves the index itself
        await store.open()
        while indexed_texts(tmp_path / "history.db") != ["recent words"]:
            await asyncio.sleep(0.02)
    await store.close()


async def test_the_newest_text_is_kept_where_there_is_too_much(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "history.db", pace=EAGER, search_text_bytes=40_000)
    await store.open()
    for number in range(1200):
        store.append(key("one").stream, "client", [prompt(f"number{number} " + "x" * 60)])
    said(store, "one", prompt("last words"))
    assert await sessions_with(store, "last") == ["one"]
    async with asyncio.timeout(20):
        while await sessions_with(store, "number0"):
            await asyncio.sleep(0.02)
    assert await sessions_with(store, "number1199") == ["one"]
    await store.close()


async def test_a_server_that_starts_again_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as store:
        said(store, "one", chunk("before and "))
        assert await sessions_with(store, "before") == ["one"]
    index = index_path(path)
    with sqlite3.connect(index) as connection:
        (indexed,) = connection.execute("SELECT value FROM progress WHERE name = 'indexed'").fetchone()
    connection.close()
    assert indexed > 0
    async with opened(path) as store:
        said(store, "one", chunk("after"))
        assert await sessions_with(store, '"before and after"') == ["one"]


async def test_what_was_said_just_before_is_found_by_the_first_search(tmp_path: Path) -> None:
    """With the writer's own pace: nothing is committed or indexed unless the search asks for it."""
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=Pace(linger=60.0))
    await store.open()
    said(store, "one", prompt("a needle"))
    found = await store.search(Query.parse("needle"), limit=10, each=3)
    assert ([hits.key.session for hits in found.sessions], found.is_complete) == (["one"], True)
    said(store, "two", prompt("another needle"))
    searches = [store.search(Query.parse("needle"), limit=10, each=3) for _ in range(20)]
    for found in await asyncio.gather(*searches):
        assert ([hits.key.session for hits in found.sessions], found.is_complete) == (["two", "one"], True)
    await store.close()


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_what_was_said_before_a_crash_is_found_by_the_first_search_after_it(
    tmp_path: Path, is_indexed: bool
) -> None:
    (tmp_path / "copy").mkdir()
    store = sqlite_store(tmp_path / "history.db")
    await store.open()
    if is_indexed:
        said(store, "one", prompt("a needle"))
        assert await sessions_with(store, "needle") == ["one"]
    said(store, "two", prompt("another needle"))
    for file in tmp_path.glob("history.db*"):
        shutil.copy(file, tmp_path / "copy" / file.name)
    await store.close()
    async with opened(tmp_path / "copy" / "history.db") as crashed:
        found = await crashed.search(Query.parse("needle"), limit=10, each=3)
        assert [hits.key.session for hits in found.sessions] == (["two", "one"] if is_indexed else ["two"])
        assert found.is_complete


async def test_a_search_waits_for_an_index_that_does_not_come_for_a_bounded_time_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    index_path(path).mkdir()
    async with opened(path) as store:
        said(store, "one", prompt("a needle"))
        found = await store.search(Query.parse("needle"), limit=10, each=3)
        assert (found.sessions, found.is_complete) == ([], False)
        waiting = asyncio.create_task(store.search(Query.parse("needle"), limit=10, each=3))
        await asyncio.sleep(0)
    assert (await waiting).sessions == []


async def test_a_server_with_nothing_to_do_indexes_before_anybody_asks(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as store:
        said(store, "one", prompt("a needle"))
        async with asyncio.timeout(30):
            while not index_path(path).exists() or indexed_texts(path) != ["a needle"]:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("damage", ["missing", "garbage", "cut", "of another database"])
async def test_an_index_that_cannot_be_used_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as store:
        said(store, "one", prompt("needle"))
        assert await sessions_with(store, "needle") == ["one"]
    index = index_path(path)
    match damage:
        case "missing":
            index.unlink()
        case "garbage":
            index.write_bytes(b"not a database" * 1000)
        case "cut":
            index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])
        case _:
            async with opened(tmp_path / "other" / "history.db") as other:
                said(other, "other", prompt("hay"))
                assert await sessions_with(other, "hay") == ["other"]
            index.write_bytes(index_path(tmp_path / "other" / "history.db").read_bytes())
    async with opened(path) as store:
        async with asyncio.timeout(20):
            while await sessions_with(store, "needle") != ["one"]:
                await asyncio.sleep(0.02)
        assert await sessions_with(store, "hay") == []


async def test_a_history_from_before_there_was_a_search_is_indexed(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path, search_text_bytes=0) as store:
        said(store, "one", prompt("needle"))
        with pytest.raises(NotFound, match="search_text_bytes"):
            await store.search(Query.parse("needle"), limit=10, each=3)
    assert not index_path(path).exists()
    async with opened(path) as store:
        assert await sessions_with(store, "needle") == ["one"]


async def test_what_was_deleted_takes_no_room_in_the_index_either(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as store:
        said(store, "one", *(chunk(words(number)) for number in range(20)))
        said(store, "two", chunk("needle"))
        assert await sessions_with(store, "needle") == ["two"]
        full = index_bytes(path)
        await store.delete_session(key("one"))
        async with asyncio.timeout(30):
            while index_bytes(path) > full / 3:
                assert await sessions_with(store, "needle") == ["two"]
                await asyncio.sleep(0.05)


class TightDisk(FailingDisk):
    """`left` says how much is free; None: as much as there is."""

    left: int | None = None

    def free(self, directory: Path) -> int:
        return super().free(directory) if self.left is None else self.left


@pytest.mark.promise("P-history-1")
async def test_the_index_gives_its_room_to_the_history_and_is_made_anew_when_there_is_some_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history.db"
    disk = TightDisk()
    async with opened(path, disk=disk) as store:
        said(store, "one", prompt("a needle"))
        assert await sessions_with(store, "needle") == ["one"]
        disk.left, disk.fails = 0, ["BEGIN"]
        said(store, "two", prompt("another needle"))
        await until(lambda: not index_path(path).exists())
        await committed(store)
        found = await store.search(Query.parse("needle"), limit=10, each=3)
        assert (found.sessions, found.is_complete) == ([], False)
        disk.left = None
        assert await sessions_with(store, "needle") == ["two", "one"]


async def test_a_server_starts_where_its_index_has_taken_all_room(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as store:
        said(store, "one", prompt("a needle"))
        assert await sessions_with(store, "needle") == ["one"]
    disk = TightDisk()
    disk.left = 0
    async with opened(path, disk=disk):
        assert not index_path(path).exists()


async def test_an_index_that_may_not_grow_gives_up_the_oldest_for_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    disk = TightDisk()
    async with opened(path, disk=disk) as store:
        said(store, "one", prompt("a needle"), *(chunk(words(number)) for number in range(40)))
        assert await sessions_with(store, "needle") == ["one"]
        disk.left = 2 * index_bytes(path) - 1
        assert disk.left > 2 * LEAST_BYTES
        said(store, "two", prompt("another needle"))
        assert await sessions_with(store, "another") == ["two"]
        assert index_bytes(path) <= disk.left


def words(number: int) -> str:
    """Some 100 KB, no two alike."""
    return " ".join(f"w{number}x{place}" for place in range(12_000))


def index_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{index_path(path).name}*"))


def key(name: str) -> SessionKey:
    return SessionKey(AgentId("mock"), SessionId(name))


def said(store: Store, name: str, *lines: bytes) -> None:
    store.put_session(session(name))
    store.append(key(name).stream, "agent", lines)


async def find(store: Store, text: str, *, limit: int = 10, each: int = 3) -> Findings:
    """What is found once everything is indexed."""
    async with asyncio.timeout(20):
        while True:
            complete = await store.search(Query.parse(text), limit=1000, each=each)
            if complete.is_complete:
                return await store.search(Query.parse(text), limit=limit, each=each)
            await asyncio.sleep(0.01)


async def sessions_with(store: Store, text: str) -> list[str]:
    return [hits.key.session for hits in (await find(store, text)).sessions]


def indexed_texts(path: Path) -> list[str]:
    connection = sqlite3.connect(index_path(path))
    try:
        return [text for (text,) in connection.execute("SELECT text FROM words")]
    except sqlite3.OperationalError:  # it has no tables yet
        return []
    finally:
        connection.close()


@contextlib.asynccontextmanager
async def opened(path: Path, **more: Any) -> AsyncIterator[Store]:
    store = sqlite_store(path, pace=EAGER, **more)
    await store.open()
    yield store
    await store.close()


def prompt(text: str) -> bytes:
    blocks = [{"type": "text", "text": text}]
    return json.dumps({"id": 1, "method": "session/prompt", "params": {"prompt": blocks}}).encode()


def chunk(text: str) -> bytes:
    return update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def thought(text: str) -> bytes:
    return update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})


def tool(title: str) -> bytes:
    return update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": title})


def usage() -> bytes:
    return update({"sessionUpdate": "usage_update", "used": 1})


def update(value: object) -> bytes:
    return json.dumps({"method": "session/update", "params": {"update": value}}).encode()
