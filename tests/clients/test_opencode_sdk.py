"""OpenCode's own SDK, both generations of it, against `/opencode`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.node import installed, run_node
from support.server import running_server


@pytest.mark.parametrize("generation", ["v1", "v2"])
async def test_a_conversation_with_opencodes_sdk(generation: str, tmp_path: Path) -> None:
    folder = installed("opencode")
    async with running_server(tmp_path, "--token", "sesame", "--default-agent", "mock") as server:
        said = await run_node(folder, "flow.mjs", generation, f"{server.url}/opencode", "sesame", deadline=50)
    assert said.strip() == "done"
