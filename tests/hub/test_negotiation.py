"""Which version of ACP is spoken with an agent, and which with a client: each is asked, and told what it can have."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from support.rpc import RpcClient, connected, initialize_params
from support.server import Server, running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT = Path(__file__).parent.parent / "support" / "versioned_agent.py"
WORDS = ("both", "only-1", "only-2", "echoes", "refuses-2", "fails-at-2", "only-3", "says-3", "text", "date")


def _table(name: str, word: str, *more: str) -> str:
    command = [sys.executable, str(AGENT), word]
    return "\n".join([f"[agents.{name}]", f"command = {command!r}", *more, ""])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    tables = [_table(word, word) for word in WORDS]
    tables += [_table("pinned", "both", "protocol_version = 1"), _table("pinned-2", "only-1", "protocol_version = 2")]
    tables.append(_table("pinned-wrong", "only-2", "protocol_version = 1"))
    async with running_server(tmp_path_factory.mktemp("home"), "--no-token", config="\n".join(tables)) as running:
        yield running


async def _spoken(server: Server, agent: str) -> int | None:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        listing = (await http.get(f"/v1/agents/{agent}")).json()
        return listing["serverStatus"]["protocolVersion"]  # type: ignore[no-any-return]


async def _said(client: RpcClient) -> str:
    """What the agent answers to a prompt, to a client of either version."""
    async with client.stream() as events:
        session = (await client.call("session/new", {"cwd": "/tmp", "mcpServers": []}))["sessionId"]
        answer = await client.prompt(session, "hello")
        assert "result" in answer, answer
        await events.wait_until(lambda e: "I speak" in e.text())
        return events.text()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("agent", "spoken"),
    [("both", 2), ("only-1", 1), ("only-2", 2), ("echoes", 1), ("refuses-2", 1), ("fails-at-2", 1), ("pinned", 1)],
)
async def test_an_agent_is_spoken_to_in_the_highest_version_that_it_knows(
    server: Server, agent: str, spoken: int, version: int
) -> None:
    async with connected(server.url, agent, version=version) as client:
        assert client.initialized["protocolVersion"] == version
        assert await _said(client) == f"I speak {spoken}"
    assert await _spoken(server, agent) == spoken


async def test_nobody_knows_what_an_agent_speaks_before_its_first_start(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as fresh:
        assert await _spoken(fresh, "mock") is None


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("only-3", "does not speak ACP version 2, only 3"),
        ("says-3", "makes no sense (protocolVersion 3)"),
        ("text", "makes no sense (protocolVersion 'hello')"),
        ("date", "makes no sense (protocolVersion '2024-11-05')"),
        ("pinned-wrong", "only 2; protocol_version = 1 is configured"),
        ("pinned-2", "speaks ACP version 1 only, and protocol_version = 2 is configured"),
    ],
)
async def test_an_agent_that_can_not_be_talked_to_is_refused_with_the_reason(
    server: Server, agent: str, reason: str
) -> None:
    params = {**initialize_params(2), "_meta": {"sandboxagent.dev": {"agent": agent}}}
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30) as http:
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        response = await http.post("/v1/rpc", json=message)
        assert response.status_code >= 500
        assert reason in response.json()["detail"], response.text


@pytest.mark.parametrize(
    ("asked", "given"), [(1, 1), (2, 2), (3, 2), (99, 2), (0, 1), (-1, 1), ("2", 1), (None, 1), (2.0, 2)]
)
async def test_a_client_gets_the_highest_version_that_both_know(server: Server, asked: Any, given: int) -> None:
    params = {**initialize_params(2), "protocolVersion": asked, "_meta": {"sandboxagent.dev": {"agent": "both"}}}
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30) as http:
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        result = (await http.post("/v1/rpc", json=message)).json()["result"]
    assert result["protocolVersion"] == given
    assert ("capabilities" in result, "agentCapabilities" in result) == (given == 2, given == 1)
