"""What only a store that servers share has to keep: leases, fences, and a database that goes away."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandbox_agent.core.ids import SessionKey, StreamKey
from sandbox_agent.errors import ConfigError, NotFound, SandboxAgentError, SessionElsewhere, StoreError
from sandbox_agent.store import Retention, make_store
from sandbox_agent.store.postgres.connecting import OLDEST_SERVER, Place, check_server
from sandbox_agent.store.postgres.names import read_name, spell
from sandbox_agent.store.postgres.store import PostgresStore
from sandbox_agent.store.search import Query
from support import appending
from support.cutting_proxy import CuttingProxy
from support.postgres import PASSWORD, USER, PostgresServer
from support.store_words import ANY, KEEP_ALL, KEY, STREAM, lines_of, numbered, postgres_store, read_all, session
from support.waiting import until


@asynccontextmanager
async def opened(url: str, data_dir: Path, retention: Retention = KEEP_ALL) -> AsyncIterator[PostgresStore]:
    store = postgres_store(url, data_dir, retention=retention)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


async def test_what_was_told_is_in_the_database_and_what_is_not_is_not_told(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with opened(url, tmp_path) as store:
        told: list[str] = []
        ask = "SELECT coalesce(max(last), 0) FROM sandbox_agent.streams"
        store.append(STREAM, "agent", numbered(3))
        store.once_safe(lambda: told.append(postgres.sql(ask, name_of(url))))
        assert told == []  # nothing can be committed before the loop runs
        await store.safe()
        assert told == ["3"]


async def test_a_server_that_starts_again_goes_on_and_what_it_was_before_can_write_no_more(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    lost: list[tuple[SessionKey, SandboxAgentError]] = []
    async with opened(url, tmp_path) as old:
        old.watch(lambda key, error: lost.append((key, error)))
        first = await old.acquire(STREAM)
        old.append(STREAM, "agent", numbered(2))
        await old.safe()
        old._spool._database._lock.release()  # as if its directory were mounted elsewhere
        async with opened(url, tmp_path) as new:
            lease = await new.acquire(STREAM)
            assert lease.last == 2
            assert lease.epoch > first.epoch
            new.append(STREAM, "agent", numbered(2, start=3))
            await new.safe()
            assert old.append(STREAM, "agent", [b"too late"]) == 3
            old.put_session(session(title="too late"))
            old.put_turn(KEY, "late", b"{}")
            await old.safe()
            assert old.lost(STREAM) is not None
            assert [key for key, _ in lost] == [KEY]
            assert "taken" in lost[0][1].detail
            assert await lines_of(new) == numbered(4)
            assert await new.get_session(KEY) is None
            assert await new.get_turn(KEY, "late") == (False, None)
            with pytest.raises(StoreError, match="taken the place"):
                await old.acquire(STREAM)
            fresh = StreamKey("session:mock:fresh")
            old.append(fresh, "agent", [b"too late"])
            async with asyncio.timeout(10):
                await old.safe()
            assert old.lost(fresh) is not None
            assert old.health().state == "degraded"
            assert await new.newest(fresh) == 0


async def test_a_session_of_a_server_that_lives_is_refused_and_taken_over_when_it_stops(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with opened(url, tmp_path / "b") as other:
        async with opened(url, tmp_path / "a") as owner:
            owner.append(STREAM, "agent", numbered(2))
            owner.put_session(session(title="mine"))
            await owner.safe()
            with pytest.raises(SessionElsewhere, match="another server"):
                await other.acquire(STREAM)
            assert await lines_of(other) == numbered(2)
            assert await other.newest(STREAM) == 2
            assert [record.title for record in (await other.list_sessions(ANY)).sessions] == ["mine"]
        lease = await other.acquire(STREAM)
        assert lease.last == 2
        assert other.append(STREAM, "agent", numbered(1, start=3)) == 3
        assert await lines_of(other) == numbered(3)


async def test_a_session_of_a_server_that_died_is_taken_over_when_its_lease_has_ended(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with opened(url, tmp_path / "a") as dead, opened(url, tmp_path / "b") as other:
        dead.append(STREAM, "agent", numbered(2))
        await dead.safe()
        dead._keeper.cancel()  # it renews nothing any more, as if it were stopped
        with pytest.raises(SessionElsewhere):
            await other.acquire(STREAM)
        sooner = "UPDATE sandbox_agent.nodes SET expires = now() - interval '1 s' WHERE id = '%s'"
        postgres.sql(sooner % (tmp_path / "a" / "node-id").read_text().strip(), name_of(url))
        assert (await other.acquire(STREAM)).last == 2
        other.append(STREAM, "agent", numbered(1, start=3))
        await other.safe()
        dead.append(STREAM, "agent", [b"late"])
        await dead.safe()
        assert dead.lost(STREAM) is not None
        assert await lines_of(other) == numbered(3)


@pytest.mark.timeout(120)
async def test_of_two_servers_that_claim_at_the_same_moment_one_gets_it_1000_times(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with opened(url, tmp_path / "a") as one, opened(url, tmp_path / "b") as two:
        won = Counter[str]()
        for number in range(1000):
            stream = StreamKey(f"session:mock:{number}")
            claims = {"one": one.acquire(stream), "two": two.acquire(stream)}
            first, second = claims if number % 2 else reversed(claims)
            results = await asyncio.gather(claims[first], claims[second], return_exceptions=True)
            assert sorted(isinstance(result, SessionElsewhere) for result in results) == [False, True], results
            winner = first if isinstance(results[1], SessionElsewhere) else second
            won[winner] += 1
            owner, other = (one, two) if winner == "one" else (two, one)
            owner.append(stream, "agent", numbered(1))
            other.append(stream, "agent", [b"not the owner"])
        await one.safe()
        await two.safe()
        assert won.total() == 1000
        assert min(won.values()) > 100, won  # they did meet
        rows = postgres.sql("SELECT count(*), min(last), max(last) FROM sandbox_agent.streams", name_of(url))
        assert rows.split("|") == ["1000", "1", "1"], rows
        for number in range(0, 1000, 50):
            assert await lines_of(one, StreamKey(f"session:mock:{number}")) == numbered(1)


async def test_a_new_session_under_a_name_that_another_has_is_refused_whole(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with opened(url, tmp_path / "a") as one, opened(url, tmp_path / "b") as two:
        one.append(STREAM, "agent", numbered(2))
        await one.safe()
        two.append(STREAM, "agent", [b"other"])
        await two.safe()
        error = two.lost(STREAM)
        assert error is not None
        assert "make another session" in error.detail
        assert await lines_of(one) == numbered(2)


async def test_names_that_agents_count_are_never_taken_for_new(postgres: PostgresServer, tmp_path: Path) -> None:
    async with opened(postgres.new_database(), tmp_path) as store:
        assert not store.is_new(StreamKey("session:a:1"))
        assert not store.is_new(StreamKey("session:a:session-number"))
        assert store.is_new(StreamKey("session:a:mock-0f6c1d2e3a4b5c6d7e8f9a0b1c2d3e4f"))
        assert store.is_new(StreamKey("session:a:01J9ZQK5T0XW3V8N2M4P6R7S8T"))


@pytest.mark.timeout(120)
async def test_kill_9_loses_nothing_that_was_acknowledged_twice_over(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    for rounds in (20, 100):
        command = [sys.executable, str(Path(appending.__file__)), url, str(tmp_path)]
        child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert child.stdout is not None
        async with asyncio.timeout(60):
            said = [await child.stdout.readline() for _ in range(rounds)]
        child.kill()
        said += (await child.stdout.read()).splitlines(keepends=True)
        await child.wait()
        turn, last = map(int, [line for line in said if line.endswith(b"\n")][-1].split())
        async with opened(url, tmp_path) as store:
            entries = await read_all(store, KEY.stream)
            assert len(entries) >= last
            assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
            assert [entry.envelope for entry in entries] == numbered(len(entries))
            assert (await store.acquire(KEY.stream)).last == len(entries)
            record = await store.get_session(KEY)
            assert record is not None
            assert record.updated >= turn
            assert await store.get_turn(KEY, f"turn{turn}") == (True, b"%d" % turn)


async def test_commits_whose_answers_get_lost_write_nothing_twice(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    proxy = CuttingProxy(postgres.port, range(10_000, 130_000, 4_001))
    await proxy.start()
    port = proxy.url.rpartition(":")[2]
    try:
        async with opened(url.replace(f":{postgres.port}/", f":{port}/"), tmp_path) as store:
            for number in range(1, 401):
                store.append(STREAM, "agent", numbered(1, start=number))
                if number % 2:
                    store.put_turn(KEY, str(number), b"%d" % number)
                async with asyncio.timeout(30):
                    await store.safe()
            assert store.lost(STREAM) is None
    finally:
        await proxy.stop()
    assert proxy.cuts > 20
    async with opened(url, tmp_path) as store:
        assert await lines_of(store) == numbered(400)
        assert await store.get_turn(KEY, "399") == (True, b"399")


@pytest.mark.timeout(120)
async def test_while_the_database_is_away_nothing_is_told_and_all_goes_on_when_it_is_back(
    own_postgres: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(own_postgres.new_database(), tmp_path) as store:
        store.append(STREAM, "agent", numbered(5))
        await store.safe()
        await asyncio.to_thread(own_postgres.stop)
        told: list[int] = []
        for number in range(6, 11):
            store.append(STREAM, "agent", numbered(1, start=number))
            store.once_safe(lambda number=number: told.append(number))  # type: ignore[misc]
        await until(lambda: store.is_degraded)
        health = store.health()
        assert health.state == "degraded"
        assert "cannot be reached" in (health.problem or "") or "lost" in (health.problem or "")
        assert store.backlog() > 0
        assert told == []
        await asyncio.to_thread(own_postgres.start)
        async with asyncio.timeout(30):
            await store.safe()
        assert told == list(range(6, 11))
        assert await lines_of(store) == numbered(10)
        assert (store.health().state, store.backlog()) == ("ok", 0)
    assert "history is being written again" in caplog.text
    assert PASSWORD not in caplog.text


@pytest.mark.timeout(120)
async def test_what_keeps_a_database_from_being_used_is_said_with_what_to_do(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    url = own_postgres.new_database()
    name = name_of(url)

    async def refusal(address: str) -> str:
        store = postgres_store(address, tmp_path)
        with pytest.raises(StoreError) as caught:
            await store.open()
        assert PASSWORD not in caught.value.detail
        return caught.value.detail

    assert "check the user and the password" in await refusal(own_postgres.url(name, password="wrong"))
    assert "createdb nowhere" in await refusal(own_postgres.url("nowhere"))
    assert "host and port" in await refusal(f"postgresql://{USER}:{PASSWORD}@127.0.0.1:1/{name}")
    own_postgres.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "name the primary" in await refusal(url)
    own_postgres.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    own_postgres.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "encoding UTF8" in await refusal(own_postgres.url("latin"))
    own_postgres.sql("CREATE ROLE small LOGIN PASSWORD 'word'")
    assert "grant it CREATE" in await refusal(own_postgres.url(name, user="small", password="word"))
    own_postgres.sql(f"ALTER ROLE small CONNECTION LIMIT 0; GRANT ALL ON DATABASE {name} TO small")
    assert "max_connections" in await refusal(own_postgres.url(name, user="small", password="word"))
    async with opened(url, tmp_path):
        pass
    own_postgres.sql("UPDATE sandbox_agent.meta SET value = 99 WHERE name = 'version'", name)
    assert "version 99" in await refusal(url)


async def test_a_server_that_is_too_old_is_refused() -> None:
    class Old:
        def get_server_version(self) -> object:
            return type("Version", (), {"major": OLDEST_SERVER - 1})

    with pytest.raises(StoreError, match=f"{OLDEST_SERVER} or newer"):
        await check_server(Old(), Place("postgresql://h/d"))


async def test_a_read_only_replica_is_refused(own_postgres: PostgresServer, tmp_path: Path) -> None:
    url = own_postgres.new_database()
    async with opened(url, tmp_path):
        pass
    own_postgres.stop()
    (own_postgres.directory / "data" / "standby.signal").touch()
    own_postgres.start("hot_standby=on")
    store = postgres_store(url, tmp_path)
    with pytest.raises(StoreError, match="name the primary"):
        await store.open()


async def test_ten_servers_make_the_tables_at_the_same_moment(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    stores = [postgres_store(url, tmp_path / str(number)) for number in range(10)]
    await asyncio.gather(*(store.open() for store in stores))
    assert postgres.sql("SELECT value FROM sandbox_agent.meta WHERE name = 'version'", name_of(url)) == "3"
    await asyncio.gather(*(store.close() for store in stores))


async def test_retention_removes_the_oldest_by_age_and_by_size(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    async with opened(url, tmp_path) as store:
        for number in range(1, 41):
            store.append(STREAM, "agent", [os.urandom(1000)] if number <= 39 else [b"newest"])
            await store.safe()
        postgres.sql("UPDATE sandbox_agent.batches SET ended = 1000 WHERE last <= 10", name_of(url))
    async with opened(url, tmp_path, Retention(age=3600.0, bytes=None)) as store:
        await until(lambda: postgres.sql("SELECT min(first) FROM sandbox_agent.batches", name_of(url)) == "11")
        assert [entry.sequence for entry in await read_all(store)] == list(range(11, 41))
    async with opened(url, tmp_path, Retention(age=None, bytes=12_000)) as store:
        await until(lambda: int(postgres.sql("SELECT sum(size) FROM sandbox_agent.batches", name_of(url))) <= 12_000)
        kept = [entry.sequence for entry in await read_all(store)]
        assert kept == list(range(kept[0], 41))
        assert (await store.acquire(STREAM)).last == 40


async def test_search_says_that_it_is_not_there(postgres: PostgresServer, tmp_path: Path) -> None:
    async with opened(postgres.new_database(), tmp_path) as store:
        with pytest.raises(NotFound, match="PostgreSQL"):
            await store.search(Query.parse("word"), limit=1, each=1)


def test_strange_names_come_back() -> None:
    for name in ("plain", "back\\slash", "nul\0", "half \ud800", "\\u0000", "ü"):
        assert read_name(spell(name)) == name
        assert "\0" not in spell(name)
        spell(name).encode()


def test_a_strange_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="port"):
        make_store("postgresql://h:port/d", tmp_path, retention=KEEP_ALL, memory_bytes=1, search_text_bytes=1)
