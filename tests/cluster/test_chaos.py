"""`python -m bench.chaos` in small: random faults, and everything that anybody saw held against the histories."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections import Counter
from pathlib import Path

import pytest

from support.chaos import Chaos
from support.cluster import chunks_kept, cluster, history
from support.postgres import PostgresServer


@pytest.mark.timeout(180)
async def test_random_faults_lose_nothing_double_nothing_and_run_no_turn_twice(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    verdict = await Chaos(own_postgres, tmp_path, seed, sessions=2).run(5.0)
    assert not verdict.broken, verdict
    assert verdict.turns["ok"] > 0


@pytest.mark.timeout(180)
async def test_events_that_are_swallowed_before_they_reach_who_follows_are_found(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    chaos = Chaos(own_postgres, tmp_path, secrets.randbits(32), sessions=1, swallows=lambda data: b"tick 2" in data)
    verdict = await chaos.run(3.0)
    assert verdict.broken.keys() == {"lost"}, verdict


@pytest.mark.timeout(180)
async def test_nodes_are_restarted_one_after_the_other_under_load_and_no_turn_is_lost(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        servers = {name: await nodes.start(name) for name in "abc"}
        clients = {name: await nodes.client(server) for name, server in servers.items()}
        sessions = [await clients[name].new_session() for name in "abc"]
        done: Counter[str] = Counter()
        is_over = asyncio.Event()

        async def work(session: str) -> None:
            while not is_over.is_set():
                client = clients["c"]  # whose node is the last to be restarted, when the work is done
                answer = await client.prompt(session, "slow 3", turnId=f"turn-{done[session]}")
                assert answer["result"]["stopReason"] == "end_turn", answer
                done[session] += 1

        working = [asyncio.create_task(work(session)) for session in sessions]
        for name in "ab":
            assert await servers[name].stop(signal.SIGTERM, deadline=30) == 0
            servers[name] = await nodes.start(name)
            before = dict(done)
            async with asyncio.timeout(30):
                while any(done[session] < before[session] + 2 for session in sessions):
                    await asyncio.sleep(0.05)
        is_over.set()
        await asyncio.gather(*working)
        for session in sessions:
            kept = chunks_kept(await history(clients["c"], session))
            assert kept == ["tick 1", "tick 2", "tick 3"] * done[session]
