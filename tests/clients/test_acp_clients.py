"""The official clients and goose's, as they are published, do everything that they can at `/acp`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.node import run_node, steps
from support.server import Server

STEPS = ["initialize", "session/new", "prompt", "permission", "cancel", "session/load", "permission after load"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("transport", ["http", "ws"])
async def test_official_typescript_client_does_it_all(
    transport: str, node_clients: Path, server: Server, token: str
) -> None:
    output = await run_node(node_clients, "conversation.mjs", transport, server.url, token)
    assert steps(output) == [*STEPS, "session/close", "close"]


@pytest.mark.timeout(400)
async def test_goose_client_does_it_all(goose_client: Path, open_server: Server) -> None:
    output = await run_node(goose_client, "conversation.mjs", open_server.url)
    assert steps(output) == [*STEPS, "close"]
