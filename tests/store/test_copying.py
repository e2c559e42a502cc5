"""Copies between SQLite and PostgreSQL: the same sessions, byte for byte, wherever they began or were broken off."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sandbox_agent.cli.main import cli
from sandbox_agent.errors import ConfigError, StoreError, StoreInUse
from sandbox_agent.store import Store
from sandbox_agent.store.engines import copy_store
from support.postgres import PostgresServer
from support.store_words import ANY, KEY, numbered, postgres_store, query, read_all, session, sqlite_store

NAMES = ["one", "two", "strange \\ \0 ü", "empty", "many"]


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


async def fill(store: Store) -> None:
    await store.open()
    for number, name in enumerate(NAMES):
        record = session(name, updated=float(number), alias=f"alias {name}", title=f"title {number}")
        store.put_session(record)
        for part in range(0 if name == "empty" else 3):
            lines = numbered(20_000 if name == "many" else 5, start=part * 5 + 1)
            store.append(record.key.stream, "agent" if part % 2 else "client", lines)
        store.put_turn(record.key, "t1", b"{}")
        store.put_turn(record.key, "t2", None)
    await store.close()


async def contents(store: Store) -> list[Any]:
    """Everything that can be asked for."""
    await store.open()
    found: list[Any] = []
    for record in (await store.list_sessions(ANY)).sessions:
        turns = [await store.get_turn(record.key, name) for name in ("t1", "t2", "t3")]
        newest = (await store.acquire(record.key.stream)).last
        record.owner = None
        found.append((record, await read_all(store, record.key.stream), turns, newest))
    await store.close()
    return found


async def copied(source: str, target: str, data_dir: Path) -> tuple[int, int]:
    made = await copy_store(source, target, data_dir, progress=quiet)
    return made.sessions, made.skipped


async def test_there_and_back_again_everything_is_as_it_was(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    path, back = tmp_path / "history.db", tmp_path / "back.db"
    await fill(sqlite_store(path))
    wanted = await contents(sqlite_store(path))
    assert len(wanted) == len(NAMES)
    assert await copied(f"sqlite:{path}", url, tmp_path) == (len(NAMES), 0)
    assert await contents(postgres_store(url, tmp_path / "node")) == wanted
    assert await copied(f"sqlite:{path}", url, tmp_path) == (0, len(NAMES))
    assert await copied(url, f"sqlite:{back}", tmp_path) == (len(NAMES), 0)
    assert await contents(sqlite_store(back)) == wanted


async def test_a_copy_goes_on_with_what_came_meanwhile_and_never_over_another_history(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    path = tmp_path / "history.db"
    await fill(sqlite_store(path))
    await copied(f"sqlite:{path}", url, tmp_path)
    store = postgres_store(url, tmp_path / "node")
    await store.open()
    last = (await store.acquire(KEY.stream)).last
    store.append(KEY.stream, "agent", numbered(3, start=last + 1))
    await store.close()
    with pytest.raises(StoreError, match="another history"):
        await copied(f"sqlite:{path}", url, tmp_path)
    assert await copied(url, f"sqlite:{path}", tmp_path) == (1, len(NAMES) - 1)
    assert await contents(sqlite_store(path)) == await contents(postgres_store(url, tmp_path / "node"))


@pytest.mark.parametrize("is_back", [False, True])
async def test_a_copy_that_is_broken_off_anywhere_is_finished_by_the_next(
    postgres: PostgresServer, tmp_path: Path, *, is_back: bool
) -> None:
    url, name = postgres.new_database(), f"sqlite:{tmp_path / 'history.db'}"
    source, target = (url, name) if is_back else (name, url)
    stores: dict[str, Store] = {
        url: postgres_store(url, tmp_path / "node"),
        name: sqlite_store(tmp_path / "history.db"),
    }
    await fill(stores[source])

    class Broken(Exception):
        pass

    for most in range(1, len(NAMES)):
        calls: list[int] = []

        def stop(done: int, total: int, most: int = most, calls: list[int] = calls) -> None:
            calls.append(done)
            if len(calls) == most:
                raise Broken

        with pytest.raises(Broken):
            await copy_store(source, target, tmp_path, progress=stop)
    assert await copied(source, target, tmp_path) == (1, len(NAMES) - 1)
    assert await contents(stores[target]) == await contents(stores[source])


async def test_a_copy_that_stops_within_a_history_goes_on_there(postgres: PostgresServer, tmp_path: Path) -> None:
    url, path = postgres.new_database(), tmp_path / "history.db"
    await fill(sqlite_store(path))
    await copied(f"sqlite:{path}", url, tmp_path)
    database = url.rpartition("/")[2]
    of = "stream = 'session:mock:many'"
    cut = f"DELETE FROM sandbox_agent.batches WHERE {of} AND first > 30000"
    postgres.sql(f"{cut}; DELETE FROM sandbox_agent.sessions WHERE session = 'many'", database)
    rest = f"(SELECT max(last) FROM sandbox_agent.batches WHERE {of})"
    postgres.sql(f"UPDATE sandbox_agent.streams SET last = {rest} WHERE {of}", database)
    assert await copied(f"sqlite:{path}", url, tmp_path) == (1, len(NAMES) - 1)
    assert await contents(postgres_store(url, tmp_path / "node")) == await contents(sqlite_store(path))


async def test_stores_in_use_damaged_or_missing_are_refused(postgres: PostgresServer, tmp_path: Path) -> None:
    url, path = postgres.new_database(), tmp_path / "history.db"
    with pytest.raises(StoreError, match="there is no history"):
        await copied(f"sqlite:{path}", url, tmp_path)
    await fill(sqlite_store(path))
    with pytest.raises(ConfigError, match="unknown store"):
        await copied("memory", url, tmp_path)
    server = postgres_store(url, tmp_path / "node")
    await server.open()
    with pytest.raises(StoreInUse, match="stop them"):
        await copied(f"sqlite:{path}", url, tmp_path)
    await server.close()
    busy = sqlite_store(path)
    await busy.open()
    with pytest.raises(StoreInUse):
        await copied(f"sqlite:{path}", url, tmp_path)
    await busy.close()
    query(path, "UPDATE batches SET body = x'00' WHERE id = 1")
    with pytest.raises(StoreError, match="damaged"):
        await copied(f"sqlite:{path}", url, tmp_path)


def test_the_command_says_what_it_copied(postgres: PostgresServer, tmp_path: Path) -> None:
    url, path = postgres.new_database(), tmp_path / "history.db"
    asyncio.run(fill(sqlite_store(path)))
    ran = CliRunner().invoke(cli, ["store", "copy", f"sqlite:{path}", url, "--json"])
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert (said["sessions"], said["entries"], said["turns"], said["skipped"]) == (5, 60_045, 10, 0)
    ran = CliRunner().invoke(cli, ["store", "copy", f"sqlite:{path}", url])
    assert "5 sessions were there already" in ran.output
