"""Flipped bits, wrong values and missing file descriptors: what is readable is given, what is not is told."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.errors import StoreError
from sandbox_agent.store import Entry, MemoryStore, Retention, SqliteStore, Store
from sandbox_agent.store.operations import PutSession, PutTurn, encode_operation
from sandbox_agent.store.sqlite.journal import journal_paths
from sandbox_agent.store.sqlite.writer import Pace
from support.store_words import (
    ANY,
    KEEP_ALL,
    KEY,
    STREAM,
    committed,
    lines_of,
    numbered,
    query,
    read_all,
    session,
    sqlite_store,
)
from support.waiting import until

PAGE = 8192
EAGER = Pace(linger=0.0, longest_retry=0.1)


async def opened(path: Path, **options: Any) -> SqliteStore:
    store = sqlite_store(path, **{"pace": EAGER, **options})
    await store.open()
    return store


async def with_batches(path: Path, *, count: int = 4) -> None:
    """A closed database with `count` rows of ten lines each, and five sessions."""
    store = await opened(path)
    for start in range(1, 10 * count, 10):
        store.append(STREAM, "agent", numbered(10, start=start))
        await committed(store)
    for number in range(5):
        store.put_session(session(f"s{number}", updated=float(number)))
    store.put_turn(KEY, "t", b'{"answer":1}')
    await store.close()


def flip(path: Path, table: str, column: str, where: str) -> None:
    """Turn one bit of a value, as a disk would: nothing else in the file changes."""
    connection = sqlite3.connect(path, isolation_level=None)
    ((value,),) = connection.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchall()
    ruined = bytearray(value)
    ruined[len(ruined) // 2] ^= 0x10
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (bytes(ruined),))
    connection.close()


def losses(entries: list[Entry]) -> list[tuple[int, int]]:
    notices = [json.loads(entry.envelope) for entry in entries if b"_sandboxagent/history/lost" in entry.envelope]
    return [(notice["params"]["fromSequence"], notice["params"]["toSequence"]) for notice in notices]


def kept(entries: list[Entry]) -> list[int]:
    """The numbers of those lines that are there; each must stand at its own sequence."""
    found = [(entry.sequence, json.loads(entry.envelope).get("n")) for entry in entries]
    assert all(number in (sequence, None) for sequence, number in found)
    return [number for _, number in found if number is not None]


@pytest.mark.promise("P-history-5")
async def test_a_flipped_bit_in_a_batch_costs_that_batch_alone_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    flip(path, "batches", "body", "first = 11")
    store = await opened(path)
    entries = await read_all(store)
    assert kept(entries) == [*range(1, 11), *range(21, 41)]
    assert losses(entries) == [(11, 20)]
    assert await read_all(store, limit=3) == entries
    assert (await store.read(STREAM, after=14, limit=1)) == [entries[10]]
    assert store.health().damaged > 0
    await store.close()


@pytest.mark.parametrize("wrong", [12, 1 << 30])
async def test_numbers_of_a_batch_that_were_changed_are_not_believed(tmp_path: Path, wrong: int) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    query(path, f"UPDATE batches SET first = {wrong} WHERE first = 11")
    store = await opened(path)
    assert kept(await read_all(store)) == [*range(1, 11), *range(21, 41)]
    await store.close()


async def test_rows_on_a_ruined_page_of_the_file_are_told_and_the_others_given(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = await opened(path)
    for number in range(1, 301):
        store.append(STREAM, "agent", [json.dumps({"n": number, "noise": os.urandom(400).hex()}).encode()])
        if number % 10 == 0:
            await committed(store)
    await store.close()
    content = bytearray(path.read_bytes())
    leaf = a_leaf_of(content, root_page(path, "batches"))
    content[leaf : leaf + 100] = b"\xff" * 100
    path.write_bytes(content)
    store = await opened(path)
    entries = await read_all(store)
    assert len(kept(entries)) >= 200
    assert set(kept(entries)) | {n for first, last in losses(entries) for n in range(first, last + 1)} == set(
        range(1, 301)
    )
    await store.close()


def root_page(path: Path, table: str) -> int:
    ((number,),) = query(path, f"SELECT rootpage FROM sqlite_schema WHERE name = '{table}'")
    assert isinstance(number, int)
    return number


def a_leaf_of(content: bytearray, root: int) -> int:
    """Where in the file a leaf in the middle of a table begins, whose root page has no leaves but these below it."""
    start = (root - 1) * PAGE
    assert content[start] == 5
    cells = int.from_bytes(content[start + 3 : start + 5], "big")
    pointer = start + 12 + 2 * (cells // 2)
    cell = start + int.from_bytes(content[pointer : pointer + 2], "big")
    return (int.from_bytes(content[cell : cell + 4], "big") - 1) * PAGE


async def test_batches_missing_from_the_middle_or_the_end_are_told(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    query(path, "DELETE FROM batches WHERE first IN (11, 31)")
    store = await opened(path)
    entries = await read_all(store)
    assert kept(entries) == [*range(1, 11), *range(21, 31)]
    assert losses(entries) == [(11, 20), (31, 40)]
    assert await store.read(STREAM, after=15, limit=1) == [entries[10]]
    assert store.append(STREAM, "agent", numbered(1, start=41)) == 41
    assert kept(await read_all(store, after=40)) == [41]
    await store.close()


async def test_retention_after_a_clock_that_jumped_leaves_no_hole(tmp_path: Path) -> None:
    times = iter([1000.0, 5000.0, 1001.0, 1002.0])
    now = [0.0]
    path = tmp_path / "history.db"
    store = await opened(path, clock=lambda: now[0])
    for start, time in zip(range(1, 41, 10), times, strict=True):
        now[0] = time
        store.append(STREAM, "agent", numbered(10, start=start))
        await committed(store)
    await store.close()
    now[0] = 1061.5
    aged = Retention(age=60.0, bytes=None)
    store = await opened(path, clock=lambda: now[0], retention=aged, pace=Pace(linger=0.0, retention_interval=0.0))
    await until(lambda: query(path, "SELECT min(first) FROM batches") == [(31,)])
    entries = await read_all(store)
    assert kept(entries) == list(range(31, 41))
    assert losses(entries) == []
    await store.close()


async def test_a_flipped_bit_in_a_record_costs_that_session_alone_and_the_list_names_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    flip(path, "sessions", "record", "session = 's2'")
    store = await opened(path)
    page = await store.list_sessions(ANY)
    assert [record.session_id for record in page.sessions] == ["s4", "s3", "s1", "s0"]
    assert page.unreadable == [session("s2").key]
    with pytest.raises(StoreError, match="store check"):
        await store.get_session(session("s2").key)
    with pytest.raises(StoreError, match="'s2'"):
        await store.find_sessions("s2")
    assert [record.session_id for record in await store.find_sessions("s1")] == ["s1"]
    await store.close()


async def test_damaged_records_do_not_end_a_listing_early(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    flip(path, "sessions", "record", "session = 's3'")
    store = await opened(path)
    found: list[str] = []
    cursor = None
    while True:
        page = await store.list_sessions(ANY, cursor=cursor, limit=2)
        found += [record.session_id for record in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == ["s4", "s2", "s1", "s0"]
    await store.close()


async def test_a_turn_whose_answer_is_damaged_is_known_and_has_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    flip(path, "turns", "answer", "turn = 't'")
    store = await opened(path)
    assert await store.get_turn(KEY, "t") == (True, None)
    await store.close()


@pytest.mark.parametrize(
    "wrong",
    [{"cwd": 5}, {"mcp_servers": "abc"}, {"mode": 5}, {"updated": float("nan")}, {"offered": []}, {"title": {1, 2}}],
    ids=str,
)
async def test_wrong_values_are_left_out_of_a_record_and_stop_nothing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "history.db"
    store = await opened(path)
    store.put_session(session("before"))
    store.put_session(session(**{"alias": "a", **wrong}))
    store.append(STREAM, "agent", numbered(3))
    page = await store.list_sessions(ANY)
    assert sorted(record.session_id for record in page.sessions) == ["before", "one"]
    await committed(store)
    assert store.health().state == "ok"
    assert store.health().set_aside == [f"{path}.refused"]
    await store.close()
    assert (tmp_path / "history.db.refused").stat().st_mode & 0o777 == 0o600
    store = await opened(path)
    found = await store.get_session(KEY)
    assert found is not None
    assert found.alias == "a"
    assert await lines_of(store) == numbered(3)
    await store.close()


@pytest.mark.promise("P-history-7")
async def test_an_operation_that_cannot_be_taken_in_stops_neither_the_writer_nor_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "history.db"
    store = await opened(path)
    database = store._database
    store.append(STREAM, "agent", numbered(2))
    database.pending.add(
        [
            PutSession(database.next_number(), KEY, b'{"agent":"mock","sessionId":"one","cwd":5}'),
            PutTurn(database.next_number(), KEY, "\ud800", b"{}"),
        ]
    )
    store.append(STREAM, "agent", numbered(2, start=3))
    await until(lambda: store.backlog() == 0)
    assert store.health().state == "ok"
    assert store.health().set_aside == [f"{path}.refused"]
    assert f"{path}.refused" in caplog.text
    assert await lines_of(store) == numbered(4)
    await store.close()
    lines = (tmp_path / "history.db.refused").read_bytes().splitlines()
    assert ["PutSession" in str(line) for line in lines] == [True, False]


async def test_a_journal_with_an_operation_that_cannot_be_taken_in_is_replayed_without_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = await opened(path, pace=Pace(linger=30.0, plenty_bytes=1 << 30))
    store.append(STREAM, "agent", numbered(2))
    bad = PutSession(store._database.next_number(), KEY, b'{"agent":"mock","sessionId":"one","cwd":5}')
    store._database._journal.write(bad.number, [encode_operation(bad)])
    store.append(STREAM, "agent", numbered(2, start=3))
    shutil.copytree(tmp_path, tmp_path / "copy")
    await store.close()
    revived = await opened(tmp_path / "copy" / "history.db")
    assert await lines_of(revived) == numbered(4)
    assert revived.health().set_aside == [str(tmp_path / "copy" / "history.db.refused")]
    await revived.close()


async def test_without_a_free_file_descriptor_history_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    store = await opened(path)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open("/dev/null", os.O_RDONLY)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, limits[1]))
        while True:
            try:
                held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        assert store.append(STREAM, "agent", numbered(1, start=41)) == 41
        assert len(await store.read(STREAM, after=0, limit=100)) == 41
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in held:
            os.close(fd)
    await store.close()


async def test_an_error_of_the_database_is_never_taken_for_an_empty_history(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await with_batches(path)
    store = await opened(path)
    page = root_page(path, "streams")
    content = bytearray(path.read_bytes())
    content[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        store.append(STREAM, "agent", numbered(1, start=41))
    with pytest.raises(StoreError):
        store.last_sequence(STREAM)
    await store.close()


async def test_a_database_of_version_1_is_taken_over_with_its_journal(tmp_path: Path) -> None:
    saved = Path(__file__).parent / "version1"
    path = tmp_path / "history.db"
    path.write_bytes(gzip.decompress((saved / "history.db.gz").read_bytes()))
    shutil.copy(saved / "history.db.journal.0", tmp_path)
    assert query(path, "PRAGMA user_version") == [(1,)]
    store = await opened(path)
    assert await lines_of(store) == numbered(310)
    found = await store.get_session(KEY)
    assert found is not None
    assert (found.title, found.cwd, found.mcp_servers) == ("from version 1", "/w", [{"name": "m"}])
    assert await store.get_turn(KEY, "t1") == (True, b'{"done":1}')
    assert await store.get_turn(KEY, "t2") == (True, None)
    assert store.append(STREAM, "agent", numbered(1, start=311)) == 311
    await store.close()
    assert list(tmp_path.glob("*damaged*")) == []
    flip(path, "batches", "body", "first = 1")
    store = await opened(path)
    assert kept(await read_all(store)) == list(range(301, 312))
    await store.close()


async def test_memory_leaves_wrong_values_out_too() -> None:
    store: Store = MemoryStore(retention=KEEP_ALL)
    store.put_session(session(alias="a", cwd=5))
    found = await store.get_session(KEY)
    assert found is not None
    assert (found.alias, found.cwd) == ("a", None)


async def test_a_flipped_bit_brings_nothing_of_a_deleted_session_into_the_next_of_its_name(tmp_path: Path) -> None:
    """Wherever the bit is, in what the journal says of the deletion."""
    store = sqlite_store(tmp_path / "history.db", pace=Pace(linger=60.0))
    await store.open()
    store.put_session(session(created=1.0))
    store.append(STREAM, "agent", [b'{"old":1}', b'{"old":2}'])
    store.put_turn(KEY, "t", b"old")
    journal = journal_paths(tmp_path / "history.db")[0]
    before = journal.stat().st_size
    await store.delete_session(KEY)
    after = journal.stat().st_size
    store.put_session(session(created=2.0))
    store.append(STREAM, "agent", [b'{"new":1}'])
    whole = {file.name: file.read_bytes() for file in tmp_path.glob("history.db*")}
    await store.close()
    assert before < after
    for place in range(before, after, 3):
        damaged = tmp_path / f"at{place}"
        damaged.mkdir()
        for name, content in whole.items():
            (damaged / name).write_bytes(content)
        flipped = bytearray(whole[journal.name])
        flipped[place] ^= 4
        (damaged / journal.name).write_bytes(flipped)
        found = sqlite_store(damaged / "history.db")
        await found.open()
        assert await lines_of(found) == [b'{"new":1}']
        assert await found.get_turn(KEY, "t") == (False, None)
        await found.close()


async def test_a_deletion_that_a_lost_commit_takes_back_mixes_no_two_sessions(tmp_path: Path) -> None:
    """The power fails: the database is as it was before the deletion, the journal has what came after it."""
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=Pace(linger=0.0))
    await store.open()
    store.put_session(session(created=1.0))
    store.append(STREAM, "agent", [b'{"old":1}', b'{"old":2}'])
    store.put_turn(KEY, "t", b"old")
    await committed(store)
    await store.close()
    old = path.read_bytes()
    store = sqlite_store(path, pace=Pace(linger=0.0))
    await store.open()
    await store.delete_session(KEY)
    await committed(store)
    await store.close()
    store = sqlite_store(path, pace=Pace(linger=60.0))
    await store.open()
    store.put_session(session(created=2.0))
    store.append(STREAM, "agent", [b'{"new":1}'])
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    (crashed / path.name).write_bytes(old)
    for journal in journal_paths(path):
        (crashed / journal.name).write_bytes(journal.read_bytes())
    await store.close()
    found = sqlite_store(crashed / path.name)
    await found.open()
    assert await lines_of(found) == [b'{"new":1}']
    assert await found.get_turn(KEY, "t") == (False, None)
    await found.close()
