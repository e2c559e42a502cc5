"""Limits on sessions and turns of the whole server and of a user, and that what ends makes room."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sandbox_agent.core.users import Right
from sandbox_agent.http.access.tokens import TokenFile
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


async def test_one_user_has_no_more_turns_than_are_allowed_and_takes_no_place_of_another(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "data")
    (tmp_path / "data").mkdir()
    ann, bob = file.add("ann", Right.PROMPT), file.add("bob", Right.PROMPT)
    async with (
        running_server(tmp_path, config="max_running_turns_per_user = 1\n") as server,
        connected(server.url, token=ann) as hers,
        connected(server.url, token=bob) as his,
        hers.stream() as events,
    ):
        busy, other = await hers.new_session("/tmp"), await hers.new_session("/tmp")
        hanging = asyncio.create_task(hers.prompt(busy, "hang"))
        await events.wait_for(lambda message: message.get("method") == "_sandboxagent/session/turn_started")
        refused = await hers.prompt(other, "hello")
        assert refused["error"]["code"] == -32001
        assert "ann has 1 turns running" in refused["error"]["message"]
        assert (await his.prompt(await his.new_session("/tmp"), "hello"))["result"]["stopReason"] == "end_turn"
        await hers.notify("session/cancel", {"sessionId": busy})
        assert (await hanging)["result"]["stopReason"] == "cancelled"
        assert (await hers.prompt(other, "hello"))["result"]["stopReason"] == "end_turn"
