"""The official clients and goose's, as they are published, do everything that they can at `/acp`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.node import run_node, steps
from support.server import Server

STEPS = ["initialize", "session/new", "prompt", "permission", "cancel", "session/load", "permission after load"]

STEPS_1 = (
    "initialize, session/new, prompt, permission, cancel, mode, config option, session/list, session/resume, "
    "session/load, permission after load, session/close, close"
).split(", ")
STEPS_2 = (
    "initialize, session/new, prompt, permission, cancel, config option, session/list, resume, resume with replay, "
    "permission after resume, session/close, close"
).split(", ")
each_transport = pytest.mark.parametrize("transport", ["http", "ws"])
each_agent = pytest.mark.parametrize("agent", ["mock", "mock2"])
"""The built-in agent in version 1 of ACP, and in version 2."""


@pytest.mark.timeout(400)
@each_transport
@each_agent
async def test_official_typescript_client_does_it_all(
    transport: str, agent: str, node_clients: Path, server: Server, token: str
) -> None:
    output = await run_node(node_clients, "conversation.mjs", transport, server.url, token, agent)
    assert steps(output) == STEPS_1


@pytest.mark.timeout(400)
async def test_goose_client_does_it_all(goose_client: Path, open_server: Server) -> None:
    output = await run_node(goose_client, "conversation.mjs", open_server.url)
    assert steps(output) == [*STEPS, "close"]


@pytest.mark.timeout(400)
async def test_official_version_2_client_does_it_all_with_the_built_in_agent_itself(
    node_clients: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_AGENT_MOCK_STATE", str(tmp_path))
    command = [sys.executable, "-m", "sandbox_agent.mock_agent", "--protocol", "2"]
    output = await run_node(node_clients, "conversation2.mjs", "stdio", *command)
    assert steps(output) == STEPS_2
