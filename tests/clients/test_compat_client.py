"""The npm package `sandbox-agent` 0.4.2, as it is published, at `/v1/acp/{server_id}`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.node import run_node, steps
from support.server import Server


@pytest.mark.timeout(400)
async def test_compat_client_does_sessions(node_clients: Path, server: Server, token: str) -> None:
    output = await run_node(node_clients, "compat.mjs", "sessions", server.url, token)
    assert steps(output) == ["createSession", "prompt", "permission", "error", "dispose", "resumeSession"]


@pytest.mark.timeout(400)
async def test_compat_client_gets_a_hundred_thousand_events(node_clients: Path, server: Server, token: str) -> None:
    output = await run_node(node_clients, "compat.mjs", "flood", server.url, token, deadline=300)
    assert steps(output) == ["100000 events in order"]


@pytest.mark.timeout(400)
async def test_compat_client_uses_agents_and_files(
    node_clients: Path, server: Server, token: str, tmp_path: Path
) -> None:
    output = await run_node(node_clients, "compat.mjs", "services", server.url, token, str(tmp_path))
    assert steps(output) == ["listAgents", "installAgent", "files", "dispose"]
