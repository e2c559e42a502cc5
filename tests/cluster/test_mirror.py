"""What comes over a link for a client of another version of ACP is told once, an entry at a time and whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.users import OWNER
from sandbox_agent.core.versions import Version
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.cluster import wire
from sandbox_agent.hub.cluster.link import Link
from sandbox_agent.hub.cluster.mirror import Mirror
from support.hub import hub_here

KEY = SessionKey(AgentId("mock"), SessionId("s"))


class _Link:
    """One that nobody is at the other end of."""

    node = "other"
    form = wire.FORM

    def open(self, listener: Any, introduce: Any) -> int:
        return 1

    def post(self, message: bytes) -> None: ...


@asynccontextmanager
async def mirrored(home: Path) -> AsyncIterator[tuple[Mirror, Connection]]:
    async with hub_here(home) as hub:
        connection = hub.admit(AgentId("mock"), {}, {}, Version.V2, kind=Connection, user=OWNER)
        yield Mirror(cast("Any", None), cast("Link", _Link()), connection), connection


async def told(connection: Connection) -> list[bytes]:
    batch = await connection.stream.follow(0).take(wait=0.01)
    return [] if batch is None else batch.lines


def update(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","n":%d}}' % number


async def test_an_entry_whose_lines_come_in_parts_is_told_when_it_is_whole(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as (mirror, connection):
        mirror.told([wire.Run(2, "mock", "s", entry=5, left=1)], [update(1), update(2)])
        assert await told(connection) == []
        assert not mirror.follows  # were the link to break here, all of the entry would come again
        runs = [wire.Run(1, "mock", "s", entry=5, left=0), wire.Run(1, "mock", "s", entry=7)]
        mirror.told(runs, [update(3), update(4)])
        assert await told(connection) == [update(1), update(2), update(3), update(4)]
        assert mirror.follows == {KEY: 7}


async def test_an_entry_that_was_told_already_is_left_out(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as (mirror, connection):
        mirror.told([wire.Run(0, "mock", "s", 6)], [])  # it has joined after entry 5
        runs = [wire.Run(2, "mock", "s", entry=5), wire.Run(2, "mock", "s", entry=6)]
        mirror.told(runs, [update(5), update(6), update(60), update(7)])
        assert await told(connection) == [update(6), update(7)]


async def test_nothing_more_is_told_of_a_session_that_the_client_follows_another_way(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as (mirror, connection):
        mirror.told([wire.Run(1, "mock", "s", entry=5)], [update(5)])
        assert mirror.leave(KEY) == 5
        mirror.told([wire.Run(1, "mock", "s", entry=6)], [update(6)])
        assert await told(connection) == [update(5)]


async def test_lines_whose_rest_is_lost_in_a_gap_are_not_taken_for_a_part_of_another_entry(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as (mirror, connection):
        mirror.told([wire.Run(1, "mock", "s", entry=5, left=1)], [update(1)])
        gap = b'{"jsonrpc":"2.0","method":"_sandboxagent/stream/gap","params":{"fromId":2,"toId":3}}'
        mirror.told([wire.Run(1), wire.Run(2, "mock", "s", entry=7, left=0)], [gap, update(7), update(8)])
        assert await told(connection) == [gap, update(7), update(8)]
        assert mirror.follows == {KEY: 7}


async def test_a_question_in_other_words_can_be_answered(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as (mirror, _):
        asked = b'{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s"}}'
        mirror.told([wire.Run(1, "mock", "s", entry=5)], [asked])
        assert mirror.asks == {b"9"}
