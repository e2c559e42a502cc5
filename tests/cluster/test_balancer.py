"""What a client sees of a cluster behind a balancer, configured as docs/cluster.md says, and when its own node dies."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.cluster import chunks, chunks_kept, cluster, history, until_answered
from support.node import require_tool
from support.postgres import PostgresServer
from support.rpc import open_client
from support.samples import ROOT
from support.server import Server

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly

SEQUENCES = {"_meta": {"sandboxagent.dev": {"sequences": True}}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def printed_config(folder: Path, port: int, servers: list[Server]) -> str:
    """The one in the documentation, with addresses and paths of this test."""
    found = re.search(r"```nginx\n(.*?)```", (ROOT / "docs" / "cluster.md").read_text(), re.DOTALL)
    assert found
    names = ("proxy", "client_body", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"    {name}_temp_path {folder}/{name};\n" for name in names)
    config = found[1].replace("http {", f"http {{\n    access_log off;\n{temporary}", 1)
    config = config.replace("listen 80", f"listen 127.0.0.1:{port}")
    for number, server in enumerate(servers, 5):
        config = config.replace(f"10.0.0.{number}:2468", f"127.0.0.1:{server.port}")
    head = f"pid {folder}/nginx.pid;\nworker_processes 1;\nevents {{}}\n"
    return ("user root;\n" if os.geteuid() == 0 else "") + head + config


@asynccontextmanager
async def balancer(folder: Path, servers: list[Server]) -> AsyncIterator[str]:
    nginx = require_tool("nginx")
    (folder / "logs").mkdir(parents=True)
    port = free_port()
    (folder / "nginx.conf").write_text(printed_config(folder, port, servers))
    command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    process = await asyncio.create_subprocess_exec(*command, "-g", "daemon off;")
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def test_behind_a_balancer_a_client_goes_on_though_its_node_dies(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        servers = [await nodes.start(name) for name in "abc"]
        async with (
            balancer(tmp_path / "nginx", servers) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            async with asyncio.timeout(20):
                while True:
                    try:
                        client = await open_client(http)
                        break
                    except httpx.TransportError:  # nginx is starting
                        await asyncio.sleep(0.05)
            assert (await http.get("/v1/nodes/link")).status_code == 403
            session = await client.new_session()
            await client.prompt(session, "chunks 2 1")
            owner = (await http.get(f"/v1/sessions/{session}")).json()["node"]
            servers["abc".index(owner)].kill()
            async with asyncio.timeout(30):
                while True:
                    response = await http.get("/v1/nodes")
                    if response.status_code == 200:
                        break
            client = await open_client(http)
            await until_answered(client, session, "chunks 3 1")
            assert chunks_kept(await history(client, session)) == ["1", "2", "1", "2", "3"]


@pytest.mark.promise("P-cluster-4")
async def test_a_client_whose_node_dies_continues_at_another_after_the_last_sequence_it_saw(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second, third = [await nodes.start(name) for name in "abc"]
        one, two = await nodes.client(first), await nodes.client(second, capabilities=SEQUENCES)
        session = await one.new_session()
        seen = await nodes.stream(two)
        await two.call("_sandboxagent/session/follow", {"sessionId": session, "after": 0})
        prompting = asyncio.create_task(one.prompt(session, "slow 40"))
        await seen.wait_until(lambda e: len(chunks(e)) > 5)
        second.kill()  # the node of the client, not of the session
        await seen.wait_until(lambda e: e.is_over)
        last = max(map(sequence_of, seen.messages))
        three = await nodes.client(third, capabilities=SEQUENCES)
        went_on = await nodes.stream(three)
        await three.call("_sandboxagent/session/follow", {"sessionId": session, "after": last})
        assert (await prompting)["result"]["stopReason"] == "end_turn"
        await went_on.wait_until(lambda e: chunks(e)[-1:] == ["tick 40"])
        assert chunks(seen) + chunks(went_on) == [f"tick {number}" for number in range(1, 41)]
        beyond = await three.request("_sandboxagent/session/follow", {"sessionId": session, "after": 10_000})
        assert "beyond the end" in beyond["error"]["message"]


def sequence_of(message: dict[str, Any]) -> int:
    """0 for what does not stand in a history."""
    return int(message.get("params", {}).get("_meta", {}).get("sandboxagent.dev", {}).get("sequence", 0))
