"""What is on disk when the process dies without a word."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import shutil
import sys
from pathlib import Path

import pytest

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.store import SqliteStore
from sandbox_agent.store.sqlite.disk import Disk
from sandbox_agent.store.sqlite.writer import Pace
from support import appending
from support.store_words import KEY, STREAM, committed, lines_of, numbered, query, read_all, session, sqlite_store
from support.waiting import until

HELD_BACK = Pace(linger=30.0, plenty_bytes=1 << 30)


async def run_until_killed(path: Path, rounds: int) -> tuple[int, int]:
    """The last turn and the last sequence that the program said it had stored."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, appending.__file__, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    async with asyncio.timeout(50):
        said = [await child.stdout.readline() for _ in range(rounds)]
        child.kill()
        said += (await child.stdout.read()).splitlines(keepends=True)
        await child.wait()
    turn, last = [line for line in said if line.endswith(b"\n")][-1].split()
    return int(turn), int(last)


async def crashed_copy(store: SqliteStore, path: Path, copy: Path) -> SqliteStore:
    """The files as they are now, as if the process died here."""
    copy.mkdir()
    for file in path.parent.glob("history.db*"):
        if ".search" not in file.name:  # the index is made anew, and its files come and go meanwhile
            shutil.copy(file, copy / file.name)
    return sqlite_store(copy / "history.db")


async def test_kill_9_loses_nothing_that_was_acknowledged_twice_over(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    for rounds in (40, 700):
        turn, last = await run_until_killed(path, rounds)
        store = sqlite_store(path)
        await store.open()
        entries = await read_all(store, KEY.stream)
        assert len(entries) >= last
        assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
        assert [entry.envelope for entry in entries] == numbered(len(entries))
        assert store.last_sequence(KEY.stream) == len(entries)
        record = await store.get_session(KEY)
        assert record is not None
        assert record.updated >= turn
        assert record.event_count == len(entries)
        assert await store.get_turn(KEY, f"turn{turn}") == (True, b"%d" % turn)
        await store.close()


async def test_everything_pending_is_replayed_from_the_journal_in_order(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    other = StreamKey("session:mock:two")
    store = sqlite_store(path, pace=HELD_BACK)
    await store.open()
    store.append(STREAM, "agent", numbered(5))
    await store.drop(STREAM)
    store.append(STREAM, "client", [b"anew"])
    store.append(other, "agent", numbered(3))
    store.put_session(session(title="kept"))
    store.put_session(session("two"))
    await store.delete_session(session("two").key)
    store.put_turn(KEY, "t", None)
    assert query(path, "SELECT count(*) FROM batches") == [(0,)]
    revived = await crashed_copy(store, path, tmp_path / "copy")
    await store.close()
    await revived.open()
    assert await lines_of(revived) == [b"anew"]
    assert await lines_of(revived, other) == []
    found = await revived.get_session(KEY)
    assert found is not None
    assert found.title == "kept"
    assert await revived.get_session(session("two").key) is None
    assert await revived.get_turn(KEY, "t") == (True, None)
    await revived.close()


async def test_lines_that_waited_survive_from_the_flush_on(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    others = [StreamKey(f"session:mock:{number}") for number in range(2000)]
    store = sqlite_store(path, pace=HELD_BACK)
    await store.open()
    store.append(STREAM, "client", numbered(2), flush=False)
    store.append(STREAM, "agent", numbered(1, start=3), flush=False)
    for other in others:
        store.append(other, "agent", numbered(1), flush=False)
    before = await crashed_copy(store, path, tmp_path / "before")
    store.flush()
    after = await crashed_copy(store, path, tmp_path / "after")
    await store.close()
    await before.open()
    assert await lines_of(before) == []
    await before.close()
    await after.open()
    assert await lines_of(after) == numbered(3)
    assert [await lines_of(after, other) for other in others[::100]] == [numbered(1)] * 20
    await after.close()


async def test_what_is_put_after_lines_that_wait_is_replayed_after_them(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=HELD_BACK)
    await store.open()
    store.append(STREAM, "agent", [b"1"], flush=False)
    store.put_session(session())
    store.append(STREAM, "agent", [b"2"], flush=False)
    store.put_turn(KEY, "t", b"{}")
    revived = await crashed_copy(store, path, tmp_path / "copy")
    await store.close()
    await revived.open()
    assert await lines_of(revived) == [b"1", b"2"]
    assert await revived.get_session(KEY) is not None
    assert await revived.get_turn(KEY, "t") == (True, b"{}")
    await revived.close()


async def test_a_journal_that_the_database_has_taken_in_is_not_replayed_again(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=HELD_BACK)
    await store.open()
    store.append(STREAM, "agent", numbered(5))
    await store.drop(STREAM)
    store.append(STREAM, "agent", numbered(3))
    journal = (tmp_path / "history.db.journal.0").read_bytes()
    await store.close()
    assert (tmp_path / "history.db.journal.0").read_bytes() == b""
    (tmp_path / "history.db.journal.0").write_bytes(journal)
    await store.open()
    assert await lines_of(store) == numbered(3)
    await store.close()


async def test_a_record_that_death_cut_short_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=HELD_BACK)
    await store.open()
    store.append(STREAM, "agent", numbered(2))
    store.append(STREAM, "agent", numbered(2, start=3))
    revived = await crashed_copy(store, path, tmp_path / "copy")
    await store.close()
    journal = tmp_path / "copy" / "history.db.journal.0"
    journal.write_bytes(journal.read_bytes()[:-3])
    await revived.open()
    assert await lines_of(revived) == numbered(2)
    assert revived.append(STREAM, "agent", [b"next"]) == 3
    assert list((tmp_path / "copy").glob("*damaged*")) == []
    await revived.close()


@pytest.mark.parametrize("damage", ["payload", "length", "magic", "checksum"])
@pytest.mark.promise("P-history-7")
async def test_a_damaged_journal_is_replayed_around_the_damage_and_all_of_it_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=HELD_BACK)
    await store.open()
    store.append(STREAM, "agent", numbered(2))
    journal_path = tmp_path / "history.db.journal.0"
    good = journal_path.stat().st_size
    store.append(STREAM, "agent", numbered(2, start=3))
    store.append(STREAM, "agent", numbered(2, start=5))
    revived = await crashed_copy(store, path, tmp_path / "copy")
    await store.close()
    journal = tmp_path / "copy" / "history.db.journal.0"
    content = bytearray(journal.read_bytes())
    content[good + {"payload": 20, "length": 7, "magic": 0, "checksum": 13}[damage]] ^= 0x40
    journal.write_bytes(content)
    with caplog.at_level(logging.WARNING, "sandbox_agent.store"):
        await revived.open()
    *_, lost, fifth, sixth = entries = await read_all(revived)
    assert [entry.envelope for entry in entries[:2]] == numbered(2)
    assert [fifth.envelope, sixth.envelope] == numbered(2, start=5)
    params = json.loads(lost.envelope)["params"]
    assert (params["fromSequence"], params["toSequence"], lost.sequence) == (3, 4, 4)
    (kept,) = (tmp_path / "copy").glob("*damaged*")
    assert kept.read_bytes() == content
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.name in caplog.text
    assert revived.health().set_aside == [str(kept)]
    await revived.close()


async def test_the_journal_is_emptied_once_everything_is_committed(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "history.db", pace=Pace(linger=0.0))
    await store.open()
    line = b"z" * 200_000
    for _ in range(200):
        store.append(STREAM, "agent", [line])
        await asyncio.sleep(0)
    await committed(store)
    store.append(STREAM, "agent", [line])
    await committed(store)
    await store.close()
    assert [path.stat().st_size for path in tmp_path.glob("*.journal.*")] == [0, 0]
    assert query(tmp_path / "history.db", "SELECT max(last) FROM streams") == [(201,)]


async def test_connection_streams_do_not_outlive_the_server(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    stream = StreamKey("connection:c1")
    store = sqlite_store(path, pace=Pace(linger=0.0))
    await store.open()
    store.append(stream, "agent", numbered(500))
    store.append(STREAM, "agent", numbered(2))
    await committed(store)
    store.append(stream, "agent", numbered(1))
    revived = await crashed_copy(store, path, tmp_path / "copy")
    await store.close()
    await revived.open()
    assert revived.last_sequence(stream) == 0
    assert revived.append(stream, "agent", [b"new"]) == 1
    assert await lines_of(revived, stream) == [b"new"]
    assert await lines_of(revived) == numbered(2)
    async with asyncio.timeout(30):
        while query(tmp_path / "copy" / "history.db", "SELECT 1 FROM streams WHERE name LIKE 'dropped%'"):
            await asyncio.sleep(0.01)
    await revived.close()
    found = query(tmp_path / "copy" / "history.db", "SELECT first, last FROM batches ORDER BY id")
    assert found == [(1, 2), (1, 1)]


class StubbornDisk(Disk):
    """While `is_failing`, writes stop in the middle; while `is_stubborn`, what was written cannot be taken back."""

    is_failing = False
    is_stubborn = False

    def write(self, fd: int, content: bytes) -> int:  # type: ignore[override]
        if self.is_failing:
            os.write(fd, content[: len(content) // 2])
            raise OSError(errno.EIO, "the disk fails")
        return os.write(fd, content)

    def truncate(self, fd: int, size: int) -> None:
        if self.is_stubborn:
            raise OSError(errno.EIO, "the disk fails")
        os.ftruncate(fd, size)


async def test_a_fragment_that_cannot_be_removed_from_the_journal_costs_nothing_that_follows_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    disk = StubbornDisk()
    store = sqlite_store(path, pace=HELD_BACK, disk=disk)
    await store.open()
    for last, is_stubborn in ((1, True), (3, False), (5, True), (7, False)):
        store.append(STREAM, "agent", numbered(1, start=last))
        disk.is_failing, disk.is_stubborn = True, is_stubborn
        store.append(STREAM, "agent", numbered(1, start=last + 1))
        assert store.is_degraded
        disk.is_failing = disk.is_stubborn = False
        await until(lambda: not store.is_degraded)
    store.append(STREAM, "agent", numbered(1, start=9))
    revived = await crashed_copy(store, path, tmp_path / "copy")
    await store.close()
    await revived.open()
    assert await lines_of(revived) == numbered(9)
    await revived.close()
