"""Turns by id: each runs once, and those that run are not forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, Raw

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId, ConnectionId
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import ShuttingDown, StoreDegraded
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.clients.stream import Stream
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.store import MemoryStore, Store
from sandbox_agent.store.sqlite.writer import Pace
from support.disk import small_disk
from support.store_words import KEEP_ALL, KEY, sqlite_store
from support.waiting import until

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}'


def connected(store: Store, version: Version = Version.V1) -> Connection:
    return Connection(
        ConnectionId(f"c{version}"),
        AgentId("mock"),
        {},
        {},
        version,
        lambda own, part: Stream(store, own, memory_limit=1 << 20),
        lambda connection, ticket, frame, raw: None,
    )


def prompt(connection: Connection, ticket: int) -> Request:
    raw = b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"one"}}' % ticket
    return Request(connection, ticket, frames.parse(raw), raw)


async def test_a_turn_that_runs_is_remembered_however_many_others_have_ended_since() -> None:
    store = MemoryStore(retention=KEEP_ALL)
    connection, turns = connected(store), TurnIds(store, needs_memory=True)
    turns.session_made(KEY)
    assert await turns.begin(KEY, "long", prompt(connection, 1))
    for ticket in range(2, 5002):
        assert await turns.begin(KEY, f"t{ticket}", prompt(connection, ticket))
        turns.answered(connection.id, ticket, ANSWER, has_run=True)
    assert not await turns.begin(KEY, "long", prompt(connection, 6000))
    assert connection.stream.last_id == 0  # it waits for the turn that runs
    turns.answered(connection.id, 1, ANSWER, has_run=True)
    assert connection.stream.last_id == 1


@pytest.mark.parametrize("refuses", [True, False])
@pytest.mark.promise("P-history-4")
async def test_while_history_is_not_written_a_turn_id_is_refused_unless_the_settings_accept_it(
    tmp_path: Path, *, refuses: bool
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = sqlite_store(disk.path / "history.db", pace=Pace(linger=0.0, longest_retry=0.1))
        await store.open()
        connection, turns = connected(store), TurnIds(store, needs_memory=refuses)
        disk.fill()
        store.append(KEY.stream, "agent", [b"x" * 100_000])
        await until(lambda: store.health().state == "degraded")
        if refuses:
            with pytest.raises(StoreDegraded, match="refuse_turns_when_degraded"):
                await turns.begin(KEY, "t", prompt(connection, 1))
        else:
            assert await turns.begin(KEY, "t", prompt(connection, 1))
        disk.free()
        await until(lambda: store.health().state == "ok")
        assert await turns.begin(KEY, "t", prompt(connection, 2)) is refuses
        await store.close()


@pytest.mark.parametrize("is_over", [True, False])
async def test_what_was_answered_before_the_server_stopped_is_told_to_either_version(*, is_over: bool) -> None:
    store = MemoryStore(retention=KEEP_ALL)
    turns = TurnIds(store, needs_memory=True)
    assert await turns.begin(KEY, "t", prompt(connected(store, Version.V2), 1))
    turns.begun(KEY, "t", "m1")
    if is_over:
        turns.ended(KEY, "t", Raw(b'{"stopReason":"refusal"}'), UNSET)
    restarted = TurnIds(store, needs_memory=True)
    given: list[dict[str, Any]] = []
    for version in Version:
        request = prompt(connected(store, version), 2)
        request.connection.reply = lambda _ticket, line, *_: given.append(frames.decode(line))  # type: ignore[method-assign]
        assert not await restarted.begin(KEY, "t", request)
    first, second = given
    assert second["result"] == {"messageId": "m1"}
    if is_over:
        assert first["result"] == {"stopReason": "refusal"}
    else:
        assert "running when the server stopped" in first["error"]["message"]


async def test_a_turn_that_was_cancelled_before_it_ran_is_told_to_all_who_sent_it_each_in_its_version() -> None:
    store = MemoryStore(retention=KEEP_ALL)
    turns, first = TurnIds(store, needs_memory=True), connected(store)
    assert await turns.begin(KEY, "t", prompt(first, 1))
    given: list[dict[str, Any]] = []
    for version in Version:
        request = prompt(connected(store, version), 2)
        request.connection.reply = lambda _ticket, line, *_: given.append(frames.decode(line))  # type: ignore[method-assign]
        assert not await turns.begin(KEY, "t", request)
    turns.answered(first.id, 1, frames.result(b"1", {"stopReason": "cancelled"}), has_run=False)
    old, new = given
    assert old["result"] == {"stopReason": "cancelled"}
    assert new["error"]["code"] == -32800


async def test_a_turn_that_its_server_cut_off_is_not_said_to_be_worth_another_try() -> None:
    store = MemoryStore(retention=KEEP_ALL)
    connection = connected(store)
    first = TurnIds(store, needs_memory=True)
    assert await first.begin(KEY, "t", prompt(connection, 1))
    stopped = frames.failure(b"1", ShuttingDown("the server is shutting down"))
    first.answered(connection.id, 1, stopped, has_run=True)
    again = prompt(connection, 2)
    assert not await TurnIds(store, needs_memory=True).begin(KEY, "t", again)
    assert b"agent_exited" in again.given[0]
