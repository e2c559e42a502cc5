"""An alias is one session's, whichever of the servers that share a database make sessions with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.errors import Conflict, SandboxAgentError
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.store.base import SessionRecord, Store
from sandbox_agent.store.operations import PutSession
from sandbox_agent.store.postgres import aliases
from sandbox_agent.store.postgres.connecting import Place
from sandbox_agent.store.postgres.leases import Node
from sandbox_agent.store.postgres.store import PostgresStore
from sandbox_agent.store.postgres.writing import Claim, take_in
from sandbox_agent.store.records import encode_record
from support.postgres import PostgresServer
from support.store_words import postgres_store, session


@asynccontextmanager
async def two_stores(url: str, home: Path) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    stores = postgres_store(url, home / "a"), postgres_store(url, home / "b")
    for store in stores:
        await store.open()
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


async def make(store: Store, name: str, alias: str) -> str:
    """As a session is made; gives its id."""
    inventory = Inventory(store, Feed(kept_bytes=0))
    async with inventory.reserved(alias):
        await asyncio.sleep(0)  # the agent is asked
        inventory.add(session(name, alias=alias))
    await store.safe()
    return name


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


async def named(store: Store, alias: str) -> list[str]:
    return [record.session_id for record in await store.find_sessions(alias)]


async def test_of_two_servers_that_use_an_alias_at_the_same_moment_one_gets_it(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with two_stores(url, tmp_path) as (one, two):
        for number in range(300):
            stores = (one, two) if number % 2 else (two, one)
            making = [make(store, f"{each}-{number}", f"alias {number}") for each, store in enumerate(stores)]
            tried = await asyncio.gather(*making, return_exceptions=True)
            made = [name for name in tried if isinstance(name, str)]
            (refused,) = [error for error in tried if not isinstance(error, str)]
            assert isinstance(refused, Conflict), refused
            assert refused.detail == f"a session with id or alias 'alias {number}' exists already"
            assert await named(one, f"alias {number}") == await named(two, f"alias {number}") == made
    assert postgres.sql("SELECT count(*) FROM sandbox_agent.reserved_aliases", name_of(url)) == "0"


async def test_an_alias_is_free_again_when_no_session_was_made_or_it_was_deleted(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with two_stores(postgres.new_database(), tmp_path) as (one, two):
        async with Inventory(one, Feed(kept_bytes=0)).reserved("mine"):  # and then the agent makes none
            with pytest.raises(Conflict):
                await make(two, "early", "mine")
        await make(two, "first", "mine")
        with pytest.raises(Conflict):
            await make(one, "second", "mine")
        await two.delete_session(session("first").key)
        await two.safe()
        await make(one, "third", "mine")
        assert await named(two, "mine") == ["third"]


async def test_an_alias_can_be_used_again_before_anything_is_committed(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    lost: list[SandboxAgentError] = []
    async with two_stores(postgres.new_database(), tmp_path) as (one, two):
        one.watch(lambda key, error: lost.append(error))
        async with one.reserved("mine"):
            one.put_session(session("first", alias="mine"))
        await one.delete_session(session("first").key)
        async with one.reserved("mine"):
            one.put_session(session("second", alias="mine"))
        await one.safe()
        assert (await named(two, "mine"), lost) == (["second"], [])


@pytest.mark.parametrize("is_made", [True, False])
async def test_an_alias_is_not_kept_for_a_server_that_has_died_and_one_that_was_only_slow_is_refused(
    postgres: PostgresServer, tmp_path: Path, *, is_made: bool
) -> None:
    """`is_made`: whether the other server has made its session when the slow one comes back."""
    url = postgres.new_database()
    lost: list[SandboxAgentError] = []
    async with two_stores(url, tmp_path) as (slow, other):
        slow.watch(lambda key, error: lost.append(error))
        async with slow.reserved("mine") as is_free:
            assert is_free
            node = slow.directory.node.id
            postgres.sql(f"UPDATE sandbox_agent.nodes SET expires = now() WHERE id = '{node}'", name_of(url))
            async with other.reserved("mine") as is_free:
                assert is_free
                if is_made:
                    other.put_session(session("second", alias="mine"))
                    await other.safe()
                slow.put_session(session("first", alias="mine"))
                await slow.safe()
        assert [str(error) for error in lost] == ["a session with id or alias 'mine' exists already"]
        assert isinstance(lost[0], Conflict)
        assert await named(other, "mine") == (["second"] if is_made else [])


async def test_reservations_of_earlier_runs_are_forgotten(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    async with two_stores(url, tmp_path) as (one, two), one.reserved("a"), two.reserved("b"):
        ids = one.directory.node.id, two.directory.node.id
        postgres.sql(f"UPDATE sandbox_agent.nodes SET expires = now() WHERE id = '{ids[0]}'", name_of(url))
        third = postgres_store(url, tmp_path / "c")
        await third.open()
        await third.close()
        kept = postgres.sql("SELECT alias, node FROM sandbox_agent.reserved_aliases", name_of(url))
        assert kept == f"b|{ids[1]}"


async def test_a_commit_whose_answer_got_lost_is_not_refused_when_it_is_sent_again(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with two_stores(url, tmp_path) as (one, _):
        node = one.directory.node
        record = session("one", alias="mine")
        put = PutSession(0, record.key, encode_record(record)[0])
        for before in (None, 5):  # a new session, and one whose history was begun before its record came
            connection = await Place(url).connect()
            claim = Claim(record.key.stream, before, 0, 0, 0.0, "mine")
            if before is not None:
                epoch = await connection.fetchval("SELECT epoch FROM sandbox_agent.streams")
                claim = claim._replace(epoch=epoch)
                await connection.execute("DELETE FROM sandbox_agent.sessions")
            assert await aliases.reserve(connection, node, "mine")
            first = await take_in(connection, node, [claim], [put])
            again = await take_in(connection, node, [claim], [put])
            assert first == again
            assert list(first.epochs) == [record.key.stream]
            await connection.close()


async def test_nothing_of_a_session_is_written_whose_alias_another_has(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    async with two_stores(url, tmp_path) as (one, _):
        connection = await Place(url).connect()
        fine, late = session("fine", alias="mine"), session("late", alias="theirs")
        puts = [PutSession(0, record.key, encode_record(record)[0]) for record in (fine, late)]
        claims = [Claim(record.key.stream, None, 0, 0, 0.0, record.alias) for record in (fine, late)]
        assert await aliases.reserve(connection, one.directory.node, "mine")
        assert await aliases.reserve(connection, Node("another", 1), "theirs")
        taken = await take_in(connection, one.directory.node, claims, puts)
        assert (list(taken.epochs), taken.misnamed) == ([fine.key.stream], {late.key.stream})
        assert await named(one, "theirs") == []
        assert await one.newest(StreamKey(late.key.stream)) == 0
        assert await connection.fetchval("SELECT count(*) FROM sandbox_agent.streams") == 1
        await connection.close()


async def test_sessions_that_share_an_alias_since_before_stay_and_no_other_gets_it(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    both = [session("older", alias="mine"), session("newer", alias="mine", updated=2.0)]
    async with two_stores(url, tmp_path) as (one, _):
        for record in both:
            one.put_session(record)
        await one.safe()
    postgres.sql(
        "DROP TABLE sandbox_agent.reserved_aliases; UPDATE sandbox_agent.meta SET value = 2 WHERE name = 'version'",
        name_of(url),
    )
    async with two_stores(url, tmp_path) as (one, _):
        assert await named(one, "mine") == ["newer", "older"]
        with pytest.raises(Conflict):
            await make(one, "third", "mine")
        found: SessionRecord | None = await one.get_session(both[0].key)
        assert found is not None
        assert found.alias == "mine"
