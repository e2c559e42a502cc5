"""What an agent says on stderr reaches the log, errors and history: without our secrets, and in bounded amounts."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from support.rpc import connected
from support.server import running_server

SECRET = "sk-s3cret/of+ours=0123456789"


@pytest.mark.promise("P-security-5")
async def test_a_secret_that_an_agent_prints_is_in_no_error_no_history_and_no_log(tmp_path: Path) -> None:
    says = "printf '%s\\n' \"key $MY_API_KEY\" \"$(head -c 1990 /dev/zero | tr '\\0' x)$MY_API_KEY\" >&2\n"
    config = ""
    for name, then in (("dead", "read x; exit 3"), ("m", f"exec {sys.executable} -m sandbox_agent.mock_agent")):
        (tmp_path / name).write_text(says + then)
        config += f"[agents.{name}]\ncommand = ['sh', '{tmp_path / name}']\nenv_passthrough = ['MY_API_KEY']\n"
    async with running_server(tmp_path, "--no-token", config=config, env={"MY_API_KEY": SECRET}) as server:
        async with connected(server.url, "m") as client:
            refused = await client.http.post("/v1/rpc", json=initialize("dead"))
            session = await client.new_session()
            died = await client.prompt(session, "exit 3")
            found = {"sessionId": session}
            history = await client.request("_sandboxagent/session/events", found)
        await server.stop()
        for told in (refused.text, str(died), str(history), server.log_text()):
            assert "[redacted]" in told
            assert SECRET[:9] not in told
    for kept in (tmp_path / "data").rglob("*"):
        assert not kept.is_file() or SECRET[:9].encode() not in kept.read_bytes()


def initialize(agent: str) -> dict[str, object]:
    params = {"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"agent": agent}}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


async def test_an_agent_that_floods_stderr_does_not_fill_the_log(tmp_path: Path) -> None:
    mock = f"{sys.executable} -m sandbox_agent.mock_agent"
    script = f"yes 'the same line again and again' >&2 & exec {mock}"
    config = f"[agents.m]\ncommand = {['sh', '-c', script]!r}\n"
    async with running_server(tmp_path, "--no-token", config=config) as server, connected(server.url, "m") as client:
        session = await client.new_session()
        await asyncio.sleep(2)
        await client.prompt(session, "hello")
        assert server.log.stat().st_size < 1 << 19
