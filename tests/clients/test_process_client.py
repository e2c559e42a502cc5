"""The npm package `sandbox-agent` 0.4.2 as it is published: each call about processes, MCP servers and skills.

`processes.shapes.json` is what the package got from the server that it was made for, of the same version. Ours may say
more, never less. Where that server is installed (`make bench` does that), the recording is compared with it too.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.node import CLIENTS, ROOT, run_node
from support.server import Server

RECORDED = json.loads((CLIENTS / "node" / "processes.shapes.json").read_text())
PEER = ROOT / ".cache/bench/peer/node_modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent"


def missing(recorded: Any, found: Any, where: str = "") -> list[str]:
    """What was recorded and is not found, or is of another type."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        return [
            problem
            for name, shape in recorded.items()
            for problem in (missing(shape, found[name], f"{where}.{name}") if name in found else [f"{where}.{name}"])
        ]
    if isinstance(recorded, list) and isinstance(found, list):
        return missing(recorded[0], found[0], f"{where}[]") if recorded and found else []
    return [] if recorded == found else [f"{where}: {recorded} is {found}"]


@pytest.mark.timeout(200)
async def test_every_call_gives_what_its_types_promise(
    node_clients: Path, server: Server, token: str, tmp_path: Path
) -> None:
    found = json.loads(await run_node(node_clients, "processes.mjs", server.url, token, str(tmp_path)))
    assert missing(RECORDED, found) == []
    assert found.keys() == RECORDED.keys()


if PEER.exists():

    @pytest.mark.timeout(200)
    async def test_the_recording_is_what_the_other_server_says(node_clients: Path, tmp_path: Path) -> None:
        async with _peer(tmp_path) as url:
            found = json.loads(await run_node(node_clients, "processes.mjs", url, "", str(tmp_path)))
        assert found == RECORDED


@asynccontextmanager
async def _peer(home: Path) -> AsyncIterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(PEER), "server", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, cwd=home, stdout=quiet, stderr=quiet)
    try:
        async with asyncio.timeout(30), httpx.AsyncClient(trust_env=False) as http:
            while True:
                try:
                    await http.get(f"http://127.0.0.1:{port}/v1/health")
                    break
                except httpx.HTTPError:
                    await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()
