"""What agents without manners can make us do: nothing that others feel, and nothing without bound."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support import rude_agent
from support.rpc import connected, is_permission
from support.server import Server, running_server

MIB = 1 << 20


def config(word: str, **settings: int) -> str:
    command = [sys.executable, str(Path(rude_agent.__file__)), word]
    lines = [f"{name} = {value}" for name, value in settings.items()]
    return "\n".join([*lines, f"[agents.rude]\nisolation = 'process'\ncommand = {command!r}", ""])


def memory(server: Server) -> int:
    """Resident bytes of the server."""
    pages = Path(f"/proc/{server.pid}/statm").read_text().split()[1]
    return int(pages) * 4096


def peak_memory(server: Server) -> int:
    """The most that it has ever had: what was held for a while counts too."""
    (line,) = [one for one in Path(f"/proc/{server.pid}/status").read_text().splitlines() if one.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@pytest.mark.promise("P-agent-3")
async def test_a_flood_of_garbage_is_told_as_a_few_lines_and_a_count_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("garbage")) as server,
        connected(server.url, "rude") as rude,
        connected(server.url) as good,
        rude.stream() as told,
    ):
        session, quiet = await rude.new_session(), await good.new_session()
        before = len(server.log_text())
        flood = asyncio.create_task(rude.prompt(session, "go"))
        waits = []
        while not flood.done():
            begun = time.monotonic()
            assert (await good.http.get("/v1/health")).status_code == 200
            waits.append(time.monotonic() - begun)
        assert (await flood)["result"]["stopReason"] == "end_turn"
        assert (await good.prompt(quiet, "still here"))["result"]["stopReason"] == "end_turn"
        complaints = [m["params"] for m in told.messages if m.get("method") == "_sandboxagent/agent/unparsed"]
        await told.wait_until(lambda e: _counted(e.messages) == 102_400)
        assert 1 <= len(complaints) < 200
        assert len(server.log_text()) - before < 200_000
        assert sorted(waits)[len(waits) // 2] < 1.0, "the loop was not held"


def _counted(messages: list[dict[str, Any]]) -> int:
    told = [m["params"] for m in messages if m.get("method") == "_sandboxagent/agent/unparsed"]
    return sum(one.get("lines", 1) for one in told)


async def test_an_unparsed_line_just_before_the_end_of_a_turn_is_in_the_history_with_its_session(
    tmp_path: Path,
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("last-words")) as server,
        connected(server.url, "rude") as rude,
    ):
        for _ in range(10):
            session = await rude.new_session()
            await rude.prompt(session, "go")
            page = await rude.call("_sandboxagent/session/events", {"sessionId": session})
            found = [e["envelope"] for e in page["events"] if e["envelope"].get("method", "").endswith("/unparsed")]
            assert [one["params"]["sessionId"] for one in found] == [session]
            assert found[0]["params"]["_meta"]["sandboxagent.dev"]["rawHash"] == found[0]["params"]["raw_hash"]


@pytest.mark.promise("P-limit-2")
async def test_an_agent_that_does_not_read_its_input_holds_no_request_beyond_its_bound(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("deaf", acp_request_timeout_ms=1000)) as server,
        connected(server.url, "rude") as rude,
    ):
        session = await rude.new_session()
        message = {"jsonrpc": "2.0", "method": "_vendor/large", "params": {"text": "x" * (4 * MIB)}}
        for number in range(4):
            await rude.post({**message, "id": number}, Prefer="respond-async")
        async with asyncio.timeout(20):
            stuck = await rude.post({"jsonrpc": "2.0", "id": 9, "method": "_vendor/x", "params": {}})
            assert stuck.status_code == 504
            assert "has not read its input" in stuck.json()["detail"]
            assert (await rude.call("session/list"))["sessions"]
            assert await rude.call("_sandboxagent/session/get", {"sessionId": session})
            await rude.notify("session/cancel", {"sessionId": session})


@pytest.mark.promise("P-limit-7")
async def test_open_permissions_are_bounded_and_the_agent_is_told_which_are_not_taken(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("asks", max_open_requests=100)) as server,
        connected(server.url, "rude") as rude,
        rude.stream() as events,
    ):
        session = await rude.new_session()
        await rude.prompt(session, "go")
        detail = (await rude.http.get(f"/v1/sessions/{session}")).json()
        assert len(detail["pendingPermissions"]) == 100
        await events.wait_until(lambda e: sum(map(is_permission, e.messages)) == 100)


@pytest.mark.parametrize("word", ["early", "kinds"])
@pytest.mark.promise("P-limit-7")
async def test_what_an_agent_says_too_early_or_too_often_costs_bounded_memory(tmp_path: Path, word: str) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config(word)) as server,
        connected(server.url, "rude") as rude,
    ):
        before = memory(server)
        session = await rude.new_session()
        await rude.prompt(session, "go")
        assert peak_memory(server) - before < 80 * MIB


@pytest.mark.parametrize(("field", "value"), [("cwd", 5), ("mcpServers", "abc")])
async def test_params_of_the_wrong_type_do_not_become_a_record_at_an_agent_that_does_not_mind(
    tmp_path: Path, field: str, value: Any
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("polite")) as server,
        connected(server.url, "rude") as rude,
    ):
        refused = await rude.request("session/new", {"cwd": "/tmp", "mcpServers": [], field: value})
        assert refused["error"]["code"] == -32602
        assert field in refused["error"]["message"]
        await rude.new_session()
        assert len((await rude.http.get("/v1/sessions")).json()["sessions"]) == 1
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as again:
        assert len((await again.http.get("/v1/sessions")).json()["sessions"]) == 1


async def test_files_that_an_agent_asks_for_and_does_not_read_cost_bounded_memory(tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_bytes(b"x" * (16 * MIB))
    async with (
        running_server(tmp_path, "--no-token", config=config("reads", max_inline_bytes=64 * MIB)) as server,
        connected(server.url, "rude") as rude,
    ):
        session = await rude.new_session()
        before = memory(server)
        prompt = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt"}
        params = {"sessionId": session, "prompt": [{"type": "text", "text": str(large)}]}
        await rude.post({**prompt, "params": params}, Prefer="respond-async")
        highest = before
        async with asyncio.timeout(30):
            while highest - before < 16 * MIB:  # it has begun to answer
                await asyncio.sleep(0.02)
                highest = max(highest, memory(server))
        for _ in range(100):
            await asyncio.sleep(0.02)
            highest = max(highest, memory(server))
        assert highest - before < 256 * MIB, "40 answers of 16 MiB would be 640 MiB"
        assert (await rude.http.get("/v1/health")).status_code == 200
