"""Which files are taken, and that none is overwritten."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

import pytest

from sandbox_agent.errors import ConfigError, StoreError
from sandbox_agent.store import MemoryStore, make_store
from sandbox_agent.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, open_database
from sandbox_agent.store.sqlite.writer import Pace
from support import appending
from support.store_words import KEEP_ALL, STREAM, committed, lines_of, numbered, query, session, sqlite_store


async def refuse(path: Path) -> str:
    """The reason why a store is not opened; the file must be untouched."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as caught:
        await sqlite_store(path).open()
    assert before is None or path.read_bytes() == before
    assert str(path) in caught.value.detail
    return caught.value.detail


async def filled(path: Path) -> None:
    store = sqlite_store(path)
    await store.open()
    for number in range(300):
        store.append(STREAM, "agent", [os.urandom(900)])
        store.put_session(session(f"s{number}"))
    await store.close()


async def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_text("my precious notes, which are longer than a header")
    assert "not a SQLite database" in await refuse(path)


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    query(path, "CREATE TABLE photos (id)")
    assert "another program" in await refuse(path)


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await filled(path)
    query(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    assert f"version {len(MIGRATIONS) + 1}" in await refuse(path)


@pytest.mark.parametrize("kept", [50, 5000])
async def test_a_database_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "history.db"
    await filled(path)
    path.write_bytes(path.read_bytes()[:kept])
    assert "damaged" in await refuse(path)


async def test_a_database_with_a_ruined_first_page_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await filled(path)
    content = bytearray(path.read_bytes())
    content[100:8000] = os.urandom(7900)
    path.write_bytes(content)
    assert "damaged" in await refuse(path)


async def test_damage_found_while_reading_is_told_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await filled(path)
    size = path.stat().st_size
    (pages,) = query(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'batches'")[0]
    content = bytearray(path.read_bytes())
    assert isinstance(pages, int)
    content[(pages - 1) * 8192 : pages * 8192] = b"\xff" * 8192
    path.write_bytes(content[:size])
    store = sqlite_store(path)
    await store.open()
    with pytest.raises(StoreError, match="damaged"):
        await store.read(STREAM, after=0, limit=10)
    await store.close()


async def test_what_a_database_that_was_moved_away_left_behind_is_not_taken_for_the_new_one_s(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=Pace(linger=0.0))
    await store.open()
    store.append(STREAM, "agent", numbered(50))
    await committed(store)
    log = (tmp_path / "history.db-wal").read_bytes()
    await store.close()
    path.unlink()
    (tmp_path / "history.db-wal").write_bytes(log)
    await store.open()
    assert await lines_of(store) == []
    assert store.append(STREAM, "agent", numbered(1)) == 1
    await store.close()
    assert (tmp_path / "history.db-wal.damaged.1").read_bytes() == log


async def test_a_directory_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert "directory" in await refuse(tmp_path)


async def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create the data directory"):
        await sqlite_store(tmp_path / "file" / "history.db").open()


async def test_a_second_server_is_told_who_holds_the_database(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    child = await asyncio.create_subprocess_exec(
        sys.executable, appending.__file__, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    async with asyncio.timeout(50):
        await child.stdout.readline()
        assert f"pid {child.pid}" in await refuse_while_busy(path)
        child.kill()
        await child.communicate()
        store = sqlite_store(path)
        await store.open()
        await store.close()


async def refuse_while_busy(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        await sqlite_store(path).open()
    return caught.value.detail


async def test_history_is_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.db"
    await filled(path)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


async def test_every_open_begins_a_new_epoch_and_batches_carry_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    for _ in range(3):
        store = sqlite_store(path)
        await store.open()
        store.append(STREAM, "agent", numbered(1))
        await store.close()
    assert query(path, "SELECT epoch FROM batches ORDER BY id") == [(1,), (2,), (3,)]


async def test_an_older_database_is_migrated_step_by_step_and_keeps_its_data(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await filled(path)
    assert query(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]

    def add_note(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE sessions ADD COLUMN note TEXT DEFAULT 'none'")

    def spoil_note(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE sessions SET note = 'spoilt'")
        connection.execute("SELECT no_such_column FROM sessions")

    open_database(path, (*MIGRATIONS, add_note)).close()
    with pytest.raises(StoreError):
        open_database(path, (*MIGRATIONS, add_note, spoil_note))
    assert query(path, "PRAGMA user_version") == [(len(MIGRATIONS) + 1,)]
    assert query(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert query(path, "SELECT DISTINCT note, count(*) FROM sessions") == [("none", 300)]


async def test_a_page_of_sessions_is_found_by_an_index_and_not_by_sorting_them_all(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await filled(path)
    plan = query(
        path,
        "EXPLAIN QUERY PLAN SELECT record FROM sessions LEFT JOIN streams ON streams.name = sessions.stream"
        " WHERE agent = 'a' AND (updated, agent, session) < (1.0, 'a', 'x')"
        " ORDER BY updated DESC, agent DESC, session DESC LIMIT 10",
    )
    text = " ".join(str(row) for row in plan)
    assert "USING INDEX" in text
    assert "TEMP B-TREE" not in text


async def test_the_setting_names_the_store(tmp_path: Path) -> None:
    assert isinstance(
        make_store("memory", tmp_path, retention=KEEP_ALL, memory_bytes=1 << 20, search_text_bytes=1 << 20), MemoryStore
    )
    for spec, path in (
        ("sqlite", tmp_path / "history.db"),
        (f"sqlite:{tmp_path}/other.db", tmp_path / "other.db"),
        (f"sqlite:{tmp_path}", tmp_path / "history.db"),
    ):
        store = make_store(spec, tmp_path, retention=KEEP_ALL, memory_bytes=1 << 20, search_text_bytes=1 << 20)
        await store.open()
        assert store.health().path == str(path)
        store.append(STREAM, "agent", numbered(1))
        assert (await lines_of(store))[:1] == numbered(1)
        await store.close()
        assert path.exists()


@pytest.mark.parametrize("spec", ["", "sqlite:", "redis", "memory:x", "SQLITE", "postgres://x"])
def test_an_unknown_store_is_a_configuration_error(spec: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="sqlite:PATH"):
        make_store(spec, tmp_path, retention=KEEP_ALL, memory_bytes=1 << 20, search_text_bytes=1 << 20)
