"""The SDK over a network that breaks: every update once, in order, then the answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from acp import schema

from sandbox_agent import SandboxAgent
from sandbox_agent.client import Update, text_of
from sandbox_agent.errors import ConnectionLost, Unauthorized
from support.cutting_proxy import cutting_proxy
from support.server import running_server

UPDATES = 20_000
CUTS = 20


def _number(update: Update) -> int:
    return int(text_of(update).split(" ", 1)[0])


async def _numbers_over_cuts(port: int, token: str | None, seed: int) -> list[int]:
    chosen = random.Random(seed)
    points = [chosen.randrange(2_000, 6_000_000) for _ in range(CUTS)]
    async with (
        cutting_proxy(port, points) as proxy,
        SandboxAgent.connect(proxy.url, token=token) as sandbox,
    ):
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        turn = session.prompt(f"chunks {UPDATES} 100")
        numbers = [_number(update) async for update in turn if text_of(update)]
        assert turn.stop_reason == "end_turn"
        assert proxy.cuts == CUTS
    return numbers


@pytest.mark.promise("P-sdk-1")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.promise("P-session-4")
async def test_twenty_cuts_at_random_lose_no_update_and_double_none_of_a_server(tmp_path: Path, seed: int) -> None:
    async with running_server(tmp_path) as server:
        assert await _numbers_over_cuts(server.port, None, seed) == list(range(1, UPDATES + 1))


async def test_twenty_cuts_at_random_lose_no_update_and_double_none_of_an_embedded_server(tmp_path: Path) -> None:
    async with SandboxAgent.start(data_dir=tmp_path / "data", env=_state(tmp_path)) as own:
        port = int(own.url.rsplit(":", 1)[1])
        assert await _numbers_over_cuts(port, own.token, 3) == list(range(1, UPDATES + 1))


@pytest.mark.promise("P-sdk-2")
@pytest.mark.promise("P-session-7")
async def test_a_prompt_whose_post_breaks_runs_once(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path) as server,
        cutting_proxy(server.port) as proxy,
        SandboxAgent.connect(proxy.url) as sandbox,
    ):
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        ticks = 0
        async for update in session.prompt("slow 12"):
            ticks += bool(text_of(update))
            if ticks % 4 == 0:
                proxy.cut()
        assert ticks == 12
        assert await session.prompt("recall").text() == "1. slow 12"


async def test_a_permission_answered_while_the_network_is_down_arrives_when_it_is_back(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, cutting_proxy(server.port) as proxy:

        def allow(request: object) -> object:
            proxy.cut()
            return request.allow()  # type: ignore[attr-defined]

        handler: Callable[..., object] = allow
        async with SandboxAgent.connect(proxy.url, on_permission=handler) as sandbox:  # type: ignore[arg-type]
            session = await sandbox.create_session(agent="mock", cwd="/tmp")
            updates = [update async for update in session.prompt("tool ls")]
        done = [u.status for u in updates if isinstance(u, schema.ToolCallProgress)]
        assert done[-1] == "completed"


async def test_no_server_is_said_at_once(tmp_path: Path) -> None:
    async with SandboxAgent.connect("http://127.0.0.1:9") as sandbox:
        with pytest.raises(ConnectionLost, match=r"no server answers at http://127\.0\.0\.1:9"):
            async with asyncio.timeout(10):
                await sandbox.create_session(agent="mock")


async def test_a_wrong_token_is_said_and_not_tried_again(tmp_path: Path) -> None:
    async with running_server(tmp_path, env={"SANDBOX_AGENT_TOKEN": "right"}) as server:
        async with SandboxAgent.connect(server.url, token="wrong") as sandbox:
            with pytest.raises(Unauthorized):
                await sandbox.create_session(agent="mock")
        async with SandboxAgent.connect(server.url, token="right") as sandbox:
            assert (await sandbox.create_session(agent="mock", cwd="/tmp")).agent == "mock"


async def test_a_server_that_stays_away_is_given_up_after_retry_for(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url, retry_for=0.5) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")

        async def run() -> None:
            async for _ in session.prompt("slow 1000"):
                server.kill()

        async with asyncio.timeout(40):
            with pytest.raises(ConnectionLost):
                await run()


def _state(home: Path) -> dict[str, str]:
    return {"SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state"), "HOME": str(home)}
