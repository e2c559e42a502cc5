"""The nodes of a cluster, as people see them: on the command line, over HTTP, in metrics."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cluster import cluster
from support.postgres import PostgresServer

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly


async def nodes_command(url: str, *words: str) -> str:
    command = [sys.executable, "-m", "sandbox_agent", "--endpoint", url, "nodes", *words]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    return said.decode()


async def listed(url: str) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in json.loads(await nodes_command(url, "list", "--json"))}


async def test_nodes_are_listed_drained_and_resumed_on_the_command_line(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one = await nodes.client(first)
        earlier = await one.new_session()  # owned by a node that has not used it since it was restarted
        assert await first.stop(deadline=40) == 0
        postgres.sql(
            f"UPDATE sandbox_agent.streams SET owner = 'a' WHERE stream LIKE '%{earlier}'", nodes.database_name
        )
        first = await nodes.start("a")
        one = await nodes.client(first)
        session = await one.new_session()
        found = await listed(second.url)
        assert {name: (node["state"], node["sessions"]) for name, node in found.items()} == {
            "a": ("up", 2),
            "b": ("up", 0),
        }
        assert found["a"]["url"] == first.url
        assert found["b"]["isSelf"]
        assert (await one.http.get(f"/v1/sessions/{session}")).json()["node"] == "a"
        assert "node a drains" in await nodes_command(second.url, "drain", "a")
        async with asyncio.timeout(20):
            while (await listed(second.url))["a"]["sessions"]:
                await asyncio.sleep(0.1)
        table = await nodes_command(second.url, "list")
        assert [line.split()[:3] for line in table.splitlines()[1:]] == [["a", "draining", "0"], ["b", "up", "0"]]
        assert "takes sessions again" in await nodes_command(second.url, "resume", "a")
        assert (await listed(second.url))["a"]["state"] == "up"
        assert (await one.prompt(earlier, "hello"))["result"]["stopReason"] == "end_turn"
        metrics = (await one.http.get("/v1/metrics")).text
        assert 'sandbox_agent_node_info{id="a"} 1.0' in metrics
        assert "sandbox_agent_node_links" in metrics
        missing = await one.http.post("/v1/nodes/nowhere/drain")
        assert missing.status_code == 404
