"""Limits on sessions and turns of the whole server, and that what ends makes room."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.rpc import connected
from support.server import running_server


async def test_no_more_sessions_are_open_than_are_allowed_and_a_closed_one_makes_room(tmp_path: Path) -> None:
    async with running_server(tmp_path, config="max_open_sessions = 2\n") as server, connected(server.url) as rpc:
        first = await rpc.new_session("/tmp")
        await rpc.new_session("/tmp")
        params = {"cwd": "/tmp", "mcpServers": []}
        refused = await rpc.request("session/new", params)
        assert refused["error"]["code"] == -32001
        assert "max_open_sessions" in refused["error"]["message"]
        assert (await rpc.prompt(first, "hello"))["result"]["stopReason"] == "end_turn"
        await rpc.request("_sandboxagent/session/terminate", {"sessionId": first})
        assert "result" in await rpc.request("session/new", params)


async def test_no_more_turns_run_than_are_allowed_and_one_that_ends_makes_room(tmp_path: Path) -> None:
    async with running_server(tmp_path, config="max_running_turns = 1\n") as server, connected(server.url) as rpc:
        busy, other = await rpc.new_session("/tmp"), await rpc.new_session("/tmp")
        async with rpc.stream() as events:
            hanging = asyncio.create_task(rpc.prompt(busy, "hang"))
            await events.wait_for(lambda message: message.get("method") == "_sandboxagent/session/turn_started")
            refused = await rpc.prompt(other, "hello")
            assert refused["error"]["code"] == -32001
            assert "max_running_turns" in refused["error"]["message"]
            queued = asyncio.create_task(rpc.prompt(busy, "hello"))  # behind the one that runs: it takes no place
            await events.wait_for(lambda message: message.get("method") == "_sandboxagent/session/turn_queued")
            await rpc.notify("session/cancel", {"sessionId": busy})
            assert (await hanging)["result"]["stopReason"] == "cancelled"
            assert "max_running_turns" not in str(await queued)
        assert (await rpc.prompt(other, "hello"))["result"]["stopReason"] == "end_turn"
