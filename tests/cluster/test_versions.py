"""A client of another version of ACP than the agent's keeps its place in the history, wherever its session goes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cluster import Nodes, chunks, chunks_kept, cluster, history, until_answered
from support.link_proxy import State, link_proxy
from support.postgres import PostgresServer
from support.retold import SEQUENCES, entries, follow, of_history
from support.rpc import Events, Message, RpcClient
from support.server import Server

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly

each_pair = pytest.mark.parametrize(("spoken", "read"), [(1, 2), (2, 1)])
"""What the agent speaks, and what the client reads."""
RESUMED: dict[str, Any] = {"cwd": "/tmp", "mcpServers": []}
NAMELESS = str(Path(__file__).parent.parent / "support" / "nameless_agent.py")
CONFIG = f"""
[agents.mock]
command = {[sys.executable, NAMELESS]!r}
isolation = "process"
env_passthrough = ["SANDBOX_AGENT_MOCK_STATE"]
"""


async def start(nodes: Nodes, home: Path, name: str, spoken: int, **settings: Any) -> Server:
    """A node whose agent speaks version 2, or version 1 without naming its messages."""
    if spoken == 2:
        return await nodes.start(name, mock_protocol=2, **settings)
    config = home / "agents.toml"
    config.write_text(CONFIG)
    return await nodes.start(name, "--config", str(config), **settings)


async def watcher(nodes: Nodes, node: Server, read: int) -> tuple[RpcClient, Events]:
    client = await nodes.client(node, version=read, capabilities=SEQUENCES)
    return client, await nodes.stream(client)


async def assert_exact(
    nodes: Nodes, node: Server, session: str, spoken: int, seen: Events, *, before: list[Message] | None = None
) -> None:
    """Wait until `seen` has all of the history: after `before`, that is what one is told who asks for all of it now."""
    client, events = await watcher(nodes, node, 3 - spoken)
    await follow(client, events, session, 0)
    whole = of_history(events, spoken=spoken)
    await seen.wait_until(lambda e: numbers(of_history(e, spoken=spoken))[-1:] == numbers(whole)[-1:])
    told = (before or []) + of_history(seen, spoken=spoken)
    assert told == [message for at, lines in entries(whole) if at >= numbers(told)[0] for message in lines]
    assert seen.ids == list(range(1, len(seen.ids) + 1))


def numbers(messages: list[Message]) -> list[int]:
    return [at for at, _ in entries(messages)]


@pytest.mark.promise("P-cluster-3")
@each_pair
async def test_kill_9_of_the_owner_in_a_turn_costs_one_who_hears_translations_nothing(
    postgres: PostgresServer, tmp_path: Path, spoken: int, read: int
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second, third = [await start(nodes, tmp_path, name, spoken) for name in "abc"]
        one, three = await nodes.client(first, version=spoken), await nodes.client(third)
        two, seen = await watcher(nodes, second, read)
        session = await one.new_session()
        await two.call("session/resume", {"sessionId": session, **RESUMED})
        prompting = asyncio.create_task(three.prompt(session, "thought hm; plan; slow 4000", turnId="long"))
        await seen.wait_until(lambda e: len(chunks(e)) > 5)
        first.kill()
        assert "error" in await prompting
        await until_answered(three, session, "thought hm; chunks 3 1")
        await seen.wait_until(lambda e: chunks(e)[-3:] == ["1", "2", "3"])
        assert chunks(seen) == chunks_kept(await history(three, session))
        await assert_exact(nodes, third, session, spoken, seen)
        if read == 2:
            await seen.wait_until(lambda e: e.updates("state_update")[-1]["state"] == "idle")


@pytest.mark.promise("P-cluster-3")
@each_pair
@pytest.mark.parametrize("state", ["refused", "silent"])
async def test_a_link_that_breaks_in_a_turn_costs_one_who_hears_translations_nothing(
    postgres: PostgresServer, tmp_path: Path, state: State, spoken: int, read: int
) -> None:
    async with cluster(postgres, tmp_path) as nodes, link_proxy() as between:
        first = await start(nodes, tmp_path, "a", spoken, node_url=between.url)
        second = await start(nodes, tmp_path, "b", spoken)
        between.target = first.port
        one, heard = await watcher(nodes, first, spoken)
        two, seen = await watcher(nodes, second, read)
        session = await one.new_session()
        await two.call("session/resume", {"sessionId": session, **RESUMED})
        prompting = asyncio.create_task(one.prompt(session, "slow 60"))
        await seen.wait_until(lambda e: len(chunks(e)) > 5)
        before = len(chunks(seen))
        between.set(state)
        await heard.wait_until(lambda e: len(chunks(e)) > 25)
        assert len(chunks(seen)) < before + 10
        between.set("open")
        assert "result" in await prompting
        await heard.wait_until(lambda e: len(chunks(e)) == 60)
        await seen.wait_until(lambda e: len(chunks(e)) == 60)
        await assert_exact(nodes, second, session, spoken, seen)
        assert chunks(seen) == chunks_kept(await history(two, session))


@pytest.mark.promise("P-cluster-3")
@each_pair
async def test_one_who_has_been_told_nothing_yet_is_told_all_that_comes_after_its_session_has_moved(
    postgres: PostgresServer, tmp_path: Path, spoken: int, read: int
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second, third = [await start(nodes, tmp_path, name, spoken) for name in "abc"]
        one, three = await nodes.client(first, version=spoken), await nodes.client(third)
        two, seen = await watcher(nodes, second, read)
        session = await one.new_session()
        await two.call("session/resume", {"sessionId": session, **RESUMED})
        os.kill(second.pid, signal.SIGSTOP)  # it looks for the session when all has been said
        try:
            first.kill()
            await until_answered(three, session, "chunks 3 1")
        finally:
            os.kill(second.pid, signal.SIGCONT)
        await seen.wait_until(lambda e: chunks(e) == ["1", "2", "3"])
        await assert_exact(nodes, third, session, spoken, seen)


@pytest.mark.promise("P-cluster-4")
@each_pair
async def test_one_who_hears_translations_goes_on_at_another_node_when_its_own_dies(
    postgres: PostgresServer, tmp_path: Path, spoken: int, read: int
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second, third = [await start(nodes, tmp_path, name, spoken) for name in "abc"]
        one = await nodes.client(first, version=spoken)
        two, seen = await watcher(nodes, second, read)
        session = await one.new_session()
        await follow(two, seen, session, 0)
        prompting = asyncio.create_task(one.prompt(session, "plan; slow 40"))
        await seen.wait_until(lambda e: len(chunks(e)) > 5)
        second.kill()
        await seen.wait_until(lambda e: e.is_over)
        before = of_history(seen, spoken=spoken)
        again, more = await watcher(nodes, third, read)
        await follow(again, more, session, numbers(before)[-1])
        assert "result" in await prompting
        await assert_exact(nodes, first, session, spoken, more, before=before)
