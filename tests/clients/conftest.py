from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.node import installed
from support.server import Server, mock_agents, running_server

TOKEN = "a-token-for-clients"


@pytest.fixture(scope="session")
def node_clients() -> Path:
    """The official TypeScript SDK, the npm package sandbox-agent, acpx and ws."""
    return installed("node")


@pytest.fixture(scope="session")
def goose_client() -> Path:
    return installed("goose")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with asyncio.Runner() as runner:
        home = tmp_path_factory.mktemp("server")
        agents = mock_agents(mock2="--protocol 2")
        running = running_server(home, "--token", TOKEN, "--log-level", "warning", config=agents)
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Without a token, and with a default agent."""
    with asyncio.Runner() as runner:
        home = tmp_path_factory.mktemp("server")
        running = running_server(home, "--default-agent", "mock", "--log-level", "warning")
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture
def token() -> str:
    return TOKEN
