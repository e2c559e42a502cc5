"""Agents that misbehave as fast as they can beside a good one: nobody else feels them."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.agents import CustomAgent
from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.hub.agents.intake import Intake
from sandbox_agent.store import MemoryStore
from support import hostile_agent
from support.hub import hub_here
from support.rpc import connected
from support.server import Server, running_server
from support.store_words import KEEP_ALL
from support.waiting import until

TURNS, CHUNKS = 5, 300
LONGEST = 0.03
"""Seconds of CPU in one callback of the loop: some times an agent's share, for a machine that is slow."""


def command(kind: str, pause: float = 0.0) -> tuple[str, ...]:
    return (sys.executable, str(Path(hostile_agent.__file__)), kind, str(pause))


def config(pause: float) -> str:
    kinds = hostile_agent.KINDS
    return "".join(f"[agents.{kind}]\ncommand = {list(command(kind, pause))!r}\n" for kind in kinds)


@asynccontextmanager
async def misbehaving(server: Server) -> AsyncIterator[None]:
    """One client of each hostile agent, who has prompted it."""

    async def provoke(kind: str) -> None:
        async with connected(server.url, kind, deadline=120) as client:
            await client.post(_prompt(await client.new_session()), Prefer="respond-async")

    async with asyncio.TaskGroup() as group:
        for kind in hostile_agent.KINDS:
            group.create_task(provoke(kind))
    yield


def _prompt(session: str) -> dict[str, Any]:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    return {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}


@pytest.mark.timeout(180)
@pytest.mark.promise("P-agent-4")
async def test_a_good_agent_beside_twelve_hostile_ones_loses_nothing_and_health_is_answered(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token", config=config(0.02)) as server, misbehaving(server):
        before = len(server.log_text())
        async with connected(server.url, deadline=120) as good, good.stream() as events:
            session = await good.new_session()
            for _ in range(TURNS):
                answer = await good.prompt(session, f"chunks {CHUNKS} 40")
                assert answer["result"]["stopReason"] == "end_turn"
                assert (await good.http.get("/v1/health", timeout=60)).json()["status"] == "ok"
            await events.wait_until(lambda e: len(e.updates("agent_message_chunk")) >= TURNS * CHUNKS)
            said = [int(update["content"]["text"].split(" ")[0]) for update in events.updates("agent_message_chunk")]
            assert said == [*range(1, CHUNKS + 1)] * TURNS
            assert events.ids == list(range(1, len(events.ids) + 1))
        assert len(server.log_text()) - before < 2_000_000, "what agents do wrong is summed up"


class Callbacks:
    """What the loop has run since: `longest` is in seconds of CPU, so that other programs do not count."""

    longest = 0.0


@contextmanager
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callbacks]:
    seen = Callbacks()
    run = asyncio.Handle._run

    def run_measured(self: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(self)
        seen.longest = max(seen.longest, time.thread_time() - begun)

    gc.disable()  # what the tests before have left behind is not the hub's
    try:
        with monkeypatch.context() as patched:
            patched.setattr(asyncio.Handle, "_run", run_measured)
            yield seen
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", ["babbling", "confused", "impostor", "demanding", "asking", "nesting"])
@pytest.mark.promise("P-agent-4")
async def test_no_agent_holds_the_loop_for_longer_than_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async with hub_here(tmp_path, agents={kind: CustomAgent(command=command(kind))}) as hub:
        connection, _ = await hub.open_connection(AgentId(kind), {})

        async def request(number: int, method: str, params: dict[str, Any], timeout: float | None) -> bytes:
            raw = msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            return (await connection.request(frames.parse(raw), raw, timeout=timeout)).line

        made = await request(1, "session/new", {"cwd": "/tmp", "mcpServers": []}, 30)
        with measured(monkeypatch) as callbacks:
            prompt = _prompt(msgspec.json.decode(made)["result"]["sessionId"])
            turn = asyncio.create_task(request(2, "session/prompt", prompt["params"], None))
            begun = time.thread_time()
            await until(lambda: time.thread_time() - begun > 0.25, deadline=50)
        turn.cancel()
        assert callbacks.longest < LONGEST


@pytest.mark.promise("P-agent-4")
async def test_what_an_agent_says_at_once_is_handled_a_share_at_a_time_and_others_come_between() -> None:
    handled: list[int] = []
    intake = Intake(lambda lines: handled.append(len(lines)), MemoryStore(retention=KEEP_ALL))
    intake.take([b"{}"] * 100_000)
    shares = len(handled)
    await asyncio.sleep(0)  # whoever waits for the loop has its turn now
    assert shares == 1
    assert handled[0] < 10_000
    await until(lambda: sum(handled) == 100_000)
    assert max(handled) < 10_000


async def test_lines_that_take_no_time_on_a_coarse_clock_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 7.0)
    handled: list[int] = []
    intake = Intake(lambda lines: handled.append(len(lines)), MemoryStore(retention=KEEP_ALL))
    intake.take([b"{}"] * 1000)
    assert handled == [1000]
