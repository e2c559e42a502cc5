"""A node that dies, stops, is paused or cut off: another goes on, and nobody sees what history does not have."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from support.cluster import LEASE_MS, chunks, chunks_kept, cluster, history, prompt_later, until_answered
from support.postgres import PostgresServer
from support.rpc import RpcClient
from support.waiting import until

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly


def ticks(count: int) -> list[str]:
    return [f"tick {number}" for number in range(1, count + 1)]


@pytest.mark.promise("P-cluster-2")
@pytest.mark.promise("P-cluster-3")
@pytest.mark.promise("P-cluster-7")
async def test_kill_9_of_the_owner_in_a_turn_is_told_and_a_third_node_goes_on(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second, third = await nodes.start("a"), await nodes.start("b"), await nodes.start("c")
        one, two, three = [await nodes.client(node) for node in (first, second, third)]
        session = await one.new_session()
        seen_two = await nodes.stream(two)
        await two.call("session/resume", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        prompting = asyncio.create_task(three.prompt(session, "slow 4000", turnId="long"))
        await seen_two.wait_until(lambda e: len(chunks(e)) > 5)
        died = time.monotonic()
        first.kill()
        answer = await prompting  # sent once more, under its turnId, to whoever has the session now
        assert answer["error"]["data"]["turnId"] == "long", answer
        await until_answered(three, session, "chunks 3 1")
        assert time.monotonic() - died < 30
        await seen_two.wait_until(lambda e: chunks(e)[-3:] == ["1", "2", "3"])
        kept = chunks_kept(await history(three, session))
        assert chunks(seen_two) == kept  # one who watched all the time has seen what is kept, once and in order
        assert kept == [*ticks(len(kept) - 3), "1", "2", "3"]
        assert seen_two.ids == list(range(1, len(seen_two.ids) + 1))
        again = await two.prompt(session, "slow 4000", turnId="long")
        assert again["error"]["data"]["turnId"] == "long"  # it is never run again, at whichever node


@pytest.mark.promise("P-cluster-6")
async def test_a_paused_owner_writes_nothing_more_and_its_clients_follow_the_session(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        seen_one, seen_two = await nodes.stream(one), await nodes.stream(two)
        await two.call("session/resume", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        prompting = asyncio.create_task(one.prompt(session, "slow 4000"))
        await seen_two.wait_until(lambda e: len(chunks(e)) > 5)
        os.kill(first.pid, signal.SIGSTOP)
        try:
            await until_answered(two, session, "chunks 2 1")
        finally:
            os.kill(first.pid, signal.SIGCONT)
        answer = await prompting
        assert answer["error"]["data"]["type"].endswith("session_elsewhere"), answer
        answer = await one.prompt(session, "chunks 3 1")  # at the node that was paused, and forwards now
        assert answer["result"]["stopReason"] == "end_turn"
        for seen in (seen_one, seen_two):
            await seen.wait_until(lambda e: chunks(e)[-3:] == ["1", "2", "3"])
        kept = chunks_kept(await history(two, session))
        assert kept[-5:] == ["1", "2", "1", "2", "3"]
        assert chunks(seen_one) == chunks(seen_two) == kept


@pytest.mark.promise("P-cluster-7")
async def test_a_planned_stop_hands_the_session_on_at_once(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a", lease_ms=30_000), await nodes.start("b", lease_ms=30_000)
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        seen = await nodes.stream(two)
        await two.prompt(session, "chunks 2 1")
        running = asyncio.create_task(two.prompt(session, "slow 20"))
        await seen.wait_until(lambda e: len(chunks(e)) > 4)
        stopping = asyncio.create_task(first.stop(deadline=40))
        assert (await running)["result"]["stopReason"] == "end_turn"  # it is waited for
        stopped = time.monotonic()
        assert await stopping == 0
        assert (await two.prompt(session, "chunks 3 1"))["result"]["stopReason"] == "end_turn"
        assert time.monotonic() - stopped < 25  # long before its lease would have ended
        await seen.wait_until(lambda e: chunks(e)[-3:] == ["1", "2", "3"])
        assert chunks(seen) == ["1", "2", *ticks(20), "1", "2", "3"]


@pytest.mark.promise("P-cluster-8")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_with_takeover_never_history_is_read_and_a_prompt_says_why_it_cannot_go_on(
    postgres: PostgresServer, tmp_path: Path, number: signal.Signals
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a", takeover="never"), await nodes.start("b", takeover="never")
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        await two.prompt(session, "chunks 3 1")
        await first.stop(number, deadline=40)
        refused = await two.prompt(session, "chunks 3 1", turnId="t2")
        assert refused["error"]["data"]["type"].endswith("owner_gone"), refused
        assert "start that node again" in refused["error"]["message"]
        assert chunks_kept(await history(two, session)) == ["1", "2", "3"]
        await nodes.start("a", takeover="never")
        await until_answered(two, session, "chunks 3 1")


async def test_a_database_that_is_away_for_seconds_delays_turns_at_all_nodes_and_costs_nothing(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(own_postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        seen = await nodes.stream(two)
        await two.prompt(session, "chunks 1 1")
        prompting = asyncio.create_task(two.prompt(session, "slow 60"))
        await seen.wait_until(lambda e: len(chunks(e)) > 6)
        await asyncio.to_thread(own_postgres.stop)
        await seen.wait_for(lambda m: "store_degraded" in str(m))
        await asyncio.sleep(LEASE_MS / 1000 + 0.5)  # no lease is renewed, and nobody can take one over either
        await asyncio.to_thread(own_postgres.start)
        assert (await prompting)["result"]["stopReason"] == "end_turn"
        await seen.wait_until(lambda e: len(chunks(e)) == 61)
        assert chunks(seen) == ["1", *ticks(60)] == chunks_kept(await history(one, session))


@pytest.mark.promise("P-cluster-5")
async def test_of_two_nodes_that_claim_at_once_one_wins_and_the_other_forwards(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second, third = await nodes.start("a"), await nodes.start("b"), await nodes.start("c")
        one, two, three = [await nodes.client(node) for node in (first, second, third)]
        sessions = [await one.new_session() for _ in range(30)]
        assert await first.stop(deadline=40) == 0
        asked = [client.prompt(session, "chunks 2 1", turnId="once") for session in sessions for client in (two, three)]
        for answer in await asyncio.gather(*asked):
            assert answer["result"]["stopReason"] == "end_turn", answer
        for session in sessions:
            assert chunks_kept(await history(two, session)) == ["1", "2"]  # run once, though sent to both


async def test_a_second_signal_stops_a_node_without_waiting_for_its_turns(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first = await nodes.start("a", drain_ms=600_000)
        one = await nodes.client(first)
        session = await one.new_session()
        seen = await nodes.stream(one)
        await prompt_later(one, session, "hang")
        await seen.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_started")
        first.process.terminate()
        await until(lambda: "draining" in first.log_text())
        assert await first.stop(deadline=30) == 0


async def owned(client: RpcClient, name: str) -> int:
    listed = (await client.http.get("/v1/nodes")).json()["nodes"]
    return next(int(node["sessions"]) for node in listed if node["id"] == name)


async def test_a_drained_node_finishes_turns_and_hands_its_sessions_on(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(first), await nodes.client(second)
        session, idle = await one.new_session(), await one.new_session()
        seen = await nodes.stream(one)
        await prompt_later(one, session, "slow 30")
        await seen.wait_until(lambda e: len(chunks(e)) > 3)
        response = await two.http.post("/v1/nodes/a/drain")
        assert response.status_code == 204, response.text
        ended = await seen.wait_for(lambda m: m.get("id") == "slow 30")
        assert ended["result"]["stopReason"] == "end_turn"
        async with asyncio.timeout(20):
            while await owned(two, "a"):
                await asyncio.sleep(0.05)
        assert (await one.prompt(idle, "chunks 1 1"))["result"]["stopReason"] == "end_turn"
        assert (await one.prompt(session, "chunks 2 1"))["result"]["stopReason"] == "end_turn"
        listed = (await one.http.get("/v1/sessions")).json()["sessions"]
        assert {each["node"] for each in listed} == {"b"}
        refused = await one.request("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert refused["error"]["data"]["type"].endswith("node_draining"), refused
        states = {node["id"]: node["state"] for node in (await two.http.get("/v1/nodes")).json()["nodes"]}
        assert states == {"a": "draining", "b": "up"}
        await seen.wait_until(lambda e: len(chunks(e)) == 33)
        assert (await two.http.post("/v1/nodes/a/resume")).status_code == 204
        async with asyncio.timeout(10):
            while "error" in await one.request("session/new", {"cwd": "/tmp", "mcpServers": []}):
                await asyncio.sleep(0.05)
