"""Random use of a store against a plain dict."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.store import MemoryStore, Store
from sandbox_agent.store.sqlite.writer import Pace
from support.postgres import PostgresServer
from support.store_words import KEEP_ALL, postgres_store, read_all, sqlite_store

STREAMS = [StreamKey("session:a:1"), StreamKey("session:a:2"), StreamKey("session:b:1")]
streams = st.sampled_from(STREAMS)
steps = st.one_of(
    st.tuples(st.just("append"), streams, st.lists(st.binary(max_size=40), max_size=6)),
    st.tuples(st.just("read"), streams, st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(1, 120))),
    st.tuples(st.just("drop"), streams, st.none()),
    st.tuples(st.just("pause"), streams, st.none()),
    st.tuples(st.just("reopen"), streams, st.none()),
)


def expected(lines: list[bytes], after: int, limit: int, max_bytes: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    for sequence, line in enumerate(lines[after:], start=after + 1):
        max_bytes -= len(line)
        if len(found) == limit or (found and max_bytes < 0):
            break
        found.append((sequence, line))
    return found


async def play(store: Store, script: list[tuple[str, StreamKey, object]], *, is_durable: bool) -> None:
    model: dict[StreamKey, list[bytes]] = {stream: [] for stream in STREAMS}
    await store.open()
    for action, stream, argument in script:
        lines = model[stream]
        match action, argument:
            case "append", list(new):
                assert store.append(stream, "agent", new) == len(lines) + 1
                lines += new
            case "read", (int(after), int(limit), int(max_bytes)):
                page = await store.read(stream, after=after, limit=limit, max_bytes=max_bytes)
                found = [(entry.sequence, entry.envelope) for entry in page]
                assert found == expected(lines, after, limit, max_bytes)
            case "drop", _:
                await store.drop(stream)
                lines.clear()
            case "pause", _:
                await asyncio.sleep(0.002)
            case "reopen", _ if is_durable:
                await store.close()
                await store.open()
                for each in STREAMS:
                    assert (await store.acquire(each)).last == len(model[each])
        assert store.last_sequence(stream) == len(model[stream])
    for stream, lines in model.items():
        assert [entry.envelope for entry in await read_all(store, stream)] == lines
    await store.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(steps, max_size=40))
def test_memory_behaves_like_a_dict_of_lists(script: list[tuple[str, StreamKey, object]]) -> None:
    asyncio.run(play(MemoryStore(retention=KEEP_ALL), script, is_durable=False))


@pytest.mark.parametrize("linger", [0.0, 0.001, 30.0])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(steps, max_size=40))
@pytest.mark.promise("P-history-2")
def test_sqlite_behaves_like_a_dict_of_lists(linger: float, script: list[tuple[str, StreamKey, object]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = sqlite_store(Path(directory) / "history.db", pace=Pace(linger=linger))
        asyncio.run(play(store, script, is_durable=True))


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(script=st.lists(steps, max_size=40))
def test_postgresql_behaves_like_a_dict_of_lists(
    postgres: PostgresServer, script: list[tuple[str, StreamKey, object]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = postgres_store(postgres.new_database(), Path(directory))
        asyncio.run(play(store, script, is_durable=True))
