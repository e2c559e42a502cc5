"""acpx, as it is published, uses an agent of a server as if it were local."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.node import run_program
from support.server import running_server


@pytest.mark.timeout(400)
async def test_acpx_goes_on_after_the_server_was_restarted_between_two_prompts(
    node_clients: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    async def acpx(url: str, *args: str) -> str:
        agent = f"{sys.executable} -m sandbox_agent stdio --endpoint {url} --agent mock"
        command = ["node", str(node_clients / "node_modules/acpx/dist/cli.js"), "--ttl", "60", "--agent", agent]
        whole = [*command, "--approve-all", "--cwd", str(work), *args]
        for _ in range(5):  # it gives its own helper process six seconds to start, which a busy machine may need
            try:
                return await run_program(whole, cwd=work, env=env)
            except AssertionError as failure:
                if "queue owner failed to start" not in str(failure):
                    raise
        pytest.fail("acpx could not start its queue owner in five attempts")

    async with running_server(tmp_path / "server") as first:
        port = first.port
        await acpx(first.url, "sessions", "new")
        assert "remember acpx" in await acpx(first.url, "prompt", "remember acpx")
        assert "end_turn" in await acpx(first.url, "prompt", "tool ls")
    async with running_server(tmp_path / "server", port=port) as second:
        assert second.port == port
        assert "1. remember acpx" in await acpx(second.url, "prompt", "recall")
        await acpx(second.url, "sessions", "close")
