"""A server that works for ever holds no more objects than one that has worked for a while."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId, ConnectionId
from sandbox_agent.errors import UnknownAgent
from sandbox_agent.hub.clients.connection import Connection
from simulation.agent import META, Character, Memory
from simulation.loop import VirtualLoop
from simulation.plan import Plan
from simulation.server import Server, deterministic, empty_database
from simulation.trace import Trace
from support.hub import hub_here

WARM, ROUNDS = 30, 150
AGENT = AgentId("agent0")


class World:
    """A hub with its store on a virtual clock, and a simulated agent."""

    def __init__(self, directory: Path, loop: VirtualLoop) -> None:
        trace = Trace()
        trace.is_closed = True
        can = frozenset({"load", "resume", "close", "delete"})
        self.memory = Memory(Character(can=can), trace, [])
        plan = Plan(1, {}, 1, memory_bytes=1 << 20, window_bytes=600, linger=0.0, steps=())
        self.server = Server(plan, directory, loop, {AGENT: self.memory})
        self._numbers = itertools.count(1)

    async def connect(self) -> Connection:
        name = ConnectionId(f"connection{next(self._numbers)}")
        connection, _ = await self.server.hub.open_connection(AGENT, {}, connection_id=name)
        return connection

    async def ask(self, connection: Connection, method: str, **params: Any) -> dict[str, Any]:
        raw = frames.request(b"%d" % next(self._numbers), method, params)
        answer = msgspec.json.decode((await connection.request(frames.parse(raw), raw, timeout=None)).line)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    async def new(self, connection: Connection) -> dict[str, str]:
        made = await self.ask(connection, "session/new", cwd="/tmp", mcpServers=[])
        return {"sessionId": made["sessionId"], "birth": made["_meta"]["birth"]}

    async def prompt(self, connection: Connection, session: dict[str, str], **ours: str) -> None:
        text = msgspec.json.encode({"n": "p", "birth": session["birth"], "acts": [["say", 3]]}).decode()
        params = {"sessionId": session["sessionId"], "prompt": [{"type": "text", "text": text}], "_meta": {META: ours}}
        await self.ask(connection, "session/prompt", **params)

    def forget(self) -> None:
        """What the agent and this test remember is not what is counted."""
        self.server.programs[:] = [program for program in self.server.programs if not program.is_over]
        self.memory.finished.clear()
        self.memory.given.clear()
        for conversations in self.memory.conversations.values():
            for conversation in conversations:
                conversation.said.clear()


Round = Callable[[World, Connection, dict[str, str]], Awaitable[None]]


async def a_turn(world: World, connection: Connection, session: dict[str, str]) -> None:
    await world.prompt(connection, session)


async def a_session_that_is_deleted(world: World, connection: Connection, session: dict[str, str]) -> None:
    made = await world.new(connection)
    await world.prompt(connection, made)
    await world.ask(connection, "session/delete", sessionId=made["sessionId"])


async def a_connection(world: World, connection: Connection, session: dict[str, str]) -> None:
    other = await world.connect()
    await world.ask(other, "session/load", sessionId=session["sessionId"], cwd="/tmp", mcpServers=[])
    await world.prompt(other, session)
    await world.server.hub.close_connection(other.id)


async def a_crash_of_the_agent(world: World, connection: Connection, session: dict[str, str]) -> None:
    for program in world.server.programs:
        program.exit(9)
    await asyncio.sleep(30.0)
    await world.prompt(connection, session)


@pytest.mark.promise("P-limit-7")
@pytest.mark.parametrize("act", [a_turn, a_session_that_is_deleted, a_connection, a_crash_of_the_agent])
def test_what_is_over_leaves_nothing_behind(tmp_path: Path, act: Round) -> None:
    logging.disable(logging.WARNING)  # what is logged is kept by pytest
    try:
        grown = _growth(tmp_path, act)
    finally:
        logging.disable(logging.NOTSET)
    piled = {kind: number for kind, number in grown.items() if number > ROUNDS // 3}
    assert not piled, grown


def _growth(tmp_path: Path, act: Round) -> Counter[str]:
    """How many more objects of each kind there are after many rounds than after a few."""
    loop = VirtualLoop(Random(1), start=1000.0)

    async def live() -> Counter[str]:
        world = World(tmp_path / "data", loop)
        await world.server.start(is_damaged=False)
        connection = await world.connect()
        session = await world.new(connection)
        counts = []
        for rounds in (WARM, ROUNDS):
            for _ in range(rounds):
                await act(world, connection, session)
                await asyncio.sleep(1.0)
                world.forget()
            counts.append(_objects())
        await world.server.stop()
        counts[1].subtract(counts[0])
        return counts[1]

    with deterministic(loop.time, loop.chance):
        empty_database(tmp_path / "data")
        try:
            return loop.run_until_complete(live())
        finally:
            loop.close()


def _objects() -> Counter[str]:
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if kind.__name__ != "ReferenceType")


@pytest.mark.promise("P-limit-7")
async def test_names_of_agents_that_there_are_not_are_not_kept(tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub:
        connection, _ = await hub.open_connection(AgentId("mock"), {})

        async def invent(number: int) -> None:
            name = f"{number}-" + "x" * 100_000
            params = {
                "sessionId": "s",
                "cwd": "/tmp",
                "mcpServers": [],
                "agent": name,
                "_meta": {META: {"agent": name}},
            }
            for method in ("session/load", "session/new", "session/prompt", "_sandboxagent/agent/install", "_x/y"):
                raw = frames.request(b"1", method, params)
                answer = await connection.request(frames.parse(raw), raw, timeout=None)
                assert b'"error"' in answer.line
            with pytest.raises(UnknownAgent):
                await hub.open_connection(AgentId(name), {})

        for number in range(3):
            await invent(number)
        tracemalloc.start()
        try:
            for number in range(3, 33):
                await invent(number)
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 1_000_000, "of 30 names of 100 KB none is held"
        finally:
            tracemalloc.stop()
        assert hub.agents.ids() == ["mock"]
