"""A full disk, a database that is gone, a stale owner: conversations go on, and the loss is told."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sandbox_agent.core.ids import ConnectionId, connection_stream
from sandbox_agent.store.sqlite.writer import Pace
from support.disk import FailingDisk, small_disk
from support.store_words import KEY, STREAM, committed, lines_of, numbered, query, read_all, session, sqlite_store
from support.waiting import until

QUICK = Pace(linger=0.0, longest_retry=0.2)


def noise(count: int, size: int = 2000) -> list[bytes]:
    return [os.urandom(size) for _ in range(count)]


@pytest.mark.promise("P-history-3")
async def test_a_full_disk_degrades_and_room_brings_everything_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sandbox_agent.store")
    with small_disk(tmp_path / "disk") as disk:
        store = sqlite_store(disk.path / "history.db", pace=QUICK)
        await store.open()
        before, during = noise(10), noise(500)
        store.append(STREAM, "agent", before)
        await committed(store)
        disk.fill()
        for line in during:
            store.append(STREAM, "agent", [line])
        store.put_session(session(title="written on a full disk"))
        await until(lambda: "database" in (store.health().problem or ""))
        assert store.health().state == "degraded"
        assert store.health().pending_bytes > 500 * 2000
        assert await lines_of(store) == before + during
        disk.free()
        await until(lambda: store.health().state == "ok" and store.backlog() == 0)
        assert store.health().lost_entries == 0
        assert store.health().problem is None
        await store.close()
        reopened = sqlite_store(disk.path / "history.db")
        await reopened.open()
        assert await lines_of(reopened) == before + during
        assert await reopened.get_session(KEY) is not None
        await reopened.close()
    levels = [record.levelname for record in caplog.records if record.name == "sandbox_agent.store"]
    assert levels == ["ERROR", "WARNING"]


async def test_what_had_to_be_given_up_is_counted_and_a_notice_stands_in_its_place(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = sqlite_store(disk.path / "history.db", pace=QUICK, memory_bytes=300_000)
        await store.open()
        store.append(STREAM, "agent", numbered(10))
        await committed(store)
        disk.fill()
        store.append(STREAM, "agent", numbered(1, start=11))
        await until(lambda: "database" in (store.health().problem or ""))
        lines = noise(1000)
        for line in lines:
            store.append(STREAM, "agent", [line])
        assert store.backlog() < 400_000
        lost = store.health().lost_entries
        assert 700 < lost < 1000
        seen_while_full = await read_all(store)
        disk.free()
        await until(lambda: store.health().state == "ok" and store.backlog() == 0)
        assert store.health().lost_entries == lost
        entries = await read_all(store)
        assert entries == seen_while_full
        await store.close()
        reopened = sqlite_store(disk.path / "history.db")
        await reopened.open()
        assert await read_all(reopened) == entries
        await reopened.close()
    (notice,) = [entry for entry in entries if b"_sandboxagent/history/lost" in entry.envelope]
    params = json.loads(notice.envelope)["params"]
    sequences = [entry.sequence for entry in entries]
    assert notice.source == "server"
    assert params["toSequence"] == notice.sequence
    assert params["toSequence"] - params["fromSequence"] + 1 == lost
    expected = [*range(1, params["fromSequence"]), *range(params["toSequence"], 1012)]
    assert sequences == expected
    assert [entry.envelope for entry in entries[-50:]] == lines[-50:]


async def test_a_reader_inside_the_hole_gets_the_notice_too(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = sqlite_store(disk.path / "history.db", pace=QUICK, memory_bytes=100_000)
        await store.open()
        disk.fill()
        store.append(STREAM, "agent", numbered(1))
        await until(lambda: "database" in (store.health().problem or ""))
        for line in noise(200):
            store.append(STREAM, "agent", [line])
        first = (await store.read(STREAM, after=40, limit=1))[0]
        assert b"_sandboxagent/history/lost" in first.envelope
        disk.free()
        await committed(store)
        assert await store.read(STREAM, after=40, limit=1) == [first]
        await store.close()


async def test_a_hole_left_by_a_crash_on_a_full_disk_is_told_after_the_restart(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=Pace(linger=30.0))
    await store.open()
    journal = tmp_path / "history.db.journal.0"
    store.append(STREAM, "agent", numbered(2))
    whole = journal.stat().st_size
    store.append(STREAM, "agent", numbered(3, start=3))
    third = journal.stat().st_size
    store.append(STREAM, "agent", numbered(1, start=6))
    content = journal.read_bytes()
    await store.close()
    for file in tmp_path.glob("history.db*"):
        file.unlink()
    journal.write_bytes(content[:whole] + content[third:])
    await store.open()
    entries = await read_all(store)
    assert [entry.sequence for entry in entries] == [1, 2, 5, 6]
    assert json.loads(entries[2].envelope)["params"]["fromSequence"] == 3
    await store.close()


async def test_a_database_that_was_deleted_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=QUICK)
    await store.open()
    store.append(STREAM, "agent", numbered(1))
    await committed(store)
    path.unlink()
    store.append(STREAM, "agent", numbered(1, start=2))
    await until(lambda: store.health().state == "degraded")
    assert str(path) in (store.health().problem or "")
    assert [entry.sequence for entry in await store.read(STREAM, after=1, limit=9)] == [2]
    assert await lines_of(store) == numbered(2)  # the file is open, and has it still
    await store.close()


async def test_a_writer_whose_epoch_is_over_writes_no_more(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=QUICK)
    await store.open()
    store.append(STREAM, "agent", numbered(1))
    await committed(store)
    query(path, "UPDATE meta SET value = value + 1 WHERE name = 'epoch'")
    store.append(STREAM, "agent", numbered(1, start=2))
    await until(lambda: store.health().state == "degraded")
    assert "taken over" in (store.health().problem or "")
    await store.close()
    assert query(path, "SELECT max(last) FROM batches") == [(1,)]


async def test_the_state_is_ok_again_after_trouble_though_nothing_more_is_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = sqlite_store(disk.path / "history.db", pace=QUICK)
        await store.open()
        disk.fill()
        store.append(STREAM, "agent", noise(3))
        await until(lambda: store.health().state == "degraded")
        disk.free()
        await until(lambda: store.health().state == "ok")
        await store.close()


async def test_what_was_said_on_a_full_disk_is_in_the_journal_before_it_is_called_well_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk.path / "history.db"
        store = sqlite_store(path, pace=QUICK)
        await store.open()
        store.append(STREAM, "agent", numbered(3))
        await committed(store)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # the database takes nothing in, so that only the journal can have it
            disk.fill()
            store.append(STREAM, "agent", noise(5))
            store.put_turn(KEY, "t", None)
            await until(lambda: "journal" in (store.health().problem or ""))
            disk.free()
            await until(lambda: "journal" not in (store.health().problem or ""))
            store.append(STREAM, "agent", noise(1))
            seen = await lines_of(store)
            (tmp_path / "copy").mkdir()
            for file in disk.path.glob("history.db*"):
                shutil.copy(file, tmp_path / "copy" / file.name)
        await store.close()
    revived = sqlite_store(tmp_path / "copy" / "history.db")
    await revived.open()
    assert await lines_of(revived) == seen
    assert await revived.get_turn(KEY, "t") == (True, None)
    await revived.close()


async def test_a_turn_is_known_though_its_answer_had_to_be_given_up(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = sqlite_store(disk.path / "history.db", pace=QUICK, memory_bytes=100_000)
        await store.open()
        disk.fill()
        store.append(STREAM, "agent", numbered(1))
        await until(lambda: "database" in (store.health().problem or ""))
        for number in range(100):
            store.put_turn(KEY, f"t{number}", None)
            store.put_turn(KEY, f"t{number}", noise(1)[0])
        assert [(await store.get_turn(KEY, f"t{number}"))[0] for number in range(100)] == [True] * 100
        disk.free()
        await until(lambda: store.health().state == "ok" and store.backlog() == 0)
        assert [(await store.get_turn(KEY, f"t{number}"))[0] for number in range(100)] == [True] * 100
        await store.close()


async def test_closing_on_a_full_disk_ends_soon_and_the_journal_keeps_what_it_has(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = sqlite_store(disk.path / "history.db", pace=Pace(linger=30.0))
        await store.open()
        lines = noise(100)
        for line in lines:
            store.append(STREAM, "agent", [line])
        disk.fill()
        await store.close()
        disk.free()
        await store.open()
        assert await lines_of(store) == lines
        await store.close()


async def test_appending_to_a_healthy_disk_faster_than_it_writes_loses_nothing(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "history.db", memory_bytes=200_000)
    await store.open()
    line = os.urandom(50_000)
    for _ in range(200):
        store.append(STREAM, "agent", [line])
    assert store.health().lost_entries == 0
    assert await lines_of(store) == [line] * 200
    await store.close()


async def test_a_transaction_that_could_not_even_be_taken_back_does_not_stop_those_after_it(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = sqlite_store(tmp_path / "history.db", pace=QUICK, disk=disk)
    await store.open()
    disk.fails = ["COMMIT", "ROLLBACK"]
    store.append(STREAM, "agent", numbered(3))
    await until(lambda: not disk.fails and store.backlog() == 0 and not store.is_degraded)
    assert await lines_of(store) == numbered(3)
    await store.close()


async def test_events_of_a_new_connection_need_nothing_from_a_disk_that_cannot_be_read(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = sqlite_store(tmp_path / "history.db", pace=QUICK, disk=disk)
    await store.open()
    disk.fails, disk.stays = ["SELECT"], True
    own = connection_stream(ConnectionId("c"))
    assert store.append(own, "server", numbered(2)) == 1
    assert store.append(own, "server", numbered(1)) == 3
    await store.drop(own)
    assert store.append(own, "server", numbered(1)) == 1
    disk.fails = []
    await store.close()
