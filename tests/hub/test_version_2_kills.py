"""kill -9 between any two steps of a turn at an agent of version 2, of the agent and of the server: nothing hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from support.rpc import Events, Message, RpcClient, connected
from support.server import Server, running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT = Path(__file__).parent.parent / "support" / "versioned_agent.py"
CONFIG = f"[agents.two]\ncommand = {[sys.executable, str(AGENT), 'only-2']!r}\n"
SEEN = ['"stop-0"', '"messageId":"u1"', '"running"', "I have said it"]
"""What the history has at each step: before the acknowledgement, after it, at work, before the end."""

each_step = pytest.mark.parametrize("step", range(4))
DEADLINE = 30.0


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with running_server(tmp_path_factory.mktemp("home"), "--no-token", config=CONFIG) as running:
        yield running


async def _reached(client: RpcClient, session: str, step: int) -> None:
    """Return when the turn has come to this step."""
    async with asyncio.timeout(DEADLINE):
        while True:
            page = await client.call("_sandboxagent/session/events", {"sessionId": session})
            if SEEN[step].replace(" ", "") in str(page).replace("'", '"').replace(" ", ""):
                return
            await asyncio.sleep(0.02)


async def _busy(server: Server, session: str) -> bool:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        return bool((await http.get(f"/v1/sessions/{session}")).json()["isBusy"])


def _prompt(session: str, text: str, turn_id: str) -> dict[str, Any]:
    prompt = [{"type": "text", "text": text}]
    return {"sessionId": session, "prompt": prompt, "_meta": {"sandboxagent.dev": {"turnId": turn_id}}}


async def _goes_on(client: RpcClient, events: Events, session: str) -> None:
    before = len(events.messages)
    answer = await client.prompt(session, "hello")
    assert "result" in answer, answer
    if client.initialized["protocolVersion"] == 2:
        await events.wait_for(_is_idle, after=before)
    await events.wait_until(lambda e: "I speak 2" in e.text())


def _is_idle(message: Message) -> bool:
    update = message.get("params", {}).get("update", {})
    return (update.get("sessionUpdate"), update.get("state")) == ("state_update", "idle")


@each_step
@pytest.mark.parametrize("version", [1, 2])
async def test_a_killed_agent_ends_the_turn_for_both_versions_and_the_session_goes_on(
    server: Server, version: int, step: int
) -> None:
    async with connected(server.url, "two", version=version) as client, client.stream() as events:
        session = await client.new_session()
        turn = asyncio.create_task(client.request("session/prompt", _prompt(session, f"stop-{step}", "t")))
        await _reached(client, session, step)
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            processes = (await http.get("/v1/agents/two")).json()["serverStatus"]["processes"]
        os.kill(next(one["pid"] for one in processes if one["session"] == session), signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            answer = await turn
        if version == 1 or step == 0:
            assert "error" in answer
        else:
            assert answer["result"]["messageId"] == "u1"
            ended = await events.wait_for(_is_idle)
            assert ended["params"]["update"]["stopReason"] == "error"
        assert not await _busy(server, session)
        await _goes_on(client, events, session)


@each_step
async def test_a_killed_server_leaves_a_session_that_goes_on_for_both_versions(tmp_path: Path, step: int) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=CONFIG) as server,
        connected(server.url, "two", version=2) as client,
    ):
        session = await client.new_session()
        turn = asyncio.create_task(client.request("session/prompt", _prompt(session, f"stop-{step}", "t")))
        await _reached(client, session, step)
        if step:
            assert (await turn)["result"]["messageId"] == "u1"
        server.kill()
        await asyncio.gather(turn, return_exceptions=True)
    async with running_server(tmp_path, "--no-token", config=CONFIG) as server:
        for version in (2, 1):
            async with connected(server.url, "two", version=version) as client, client.stream() as events:
                params = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
                replaying = {**params, "replayFrom": {"type": "start"}} if version == 2 else params
                await client.call("session/load" if version == 1 else "session/resume", replaying)
                assert not await _busy(server, session)
                again = await client.request("session/prompt", _prompt(session, f"stop-{step}", "t"))
                if version == 2 and step:
                    assert again["result"] == {"messageId": "u1"}
                else:
                    assert "was running when the server stopped" in again["error"]["message"]
                await _goes_on(client, events, session)
