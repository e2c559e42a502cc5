"""Rule 10: a stop is bounded and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from support.rpc import connected, is_permission
from support.server import mock_agents, running_server
from support.waiting import until


def group_members(leader: int) -> list[int]:
    """Processes of a process group that are not zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def agent_pids(log: str) -> list[int]:
    return [int(line.rsplit("pid=", 1)[1]) for line in log.splitlines() if "agent started" in line]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("flags", ["", "--ignore-eof --ignore-term"])
@pytest.mark.promise("P-shutdown-1")
async def test_a_signal_in_a_running_turn_with_streams_open_ends_all_in_time(
    tmp_path: Path, number: signal.Signals, flags: str
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m=flags)) as server,
        connected(server.url, "m") as one,
        connected(server.url, "m") as other,
        one.stream() as events,
        other.stream() as watching,
    ):
        session = await one.new_session()
        await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        turn = asyncio.create_task(one.prompt(session, "spawn; slow 10000"))
        await watching.wait_until(lambda e: "tick 3" in e.text())
        pids = agent_pids(server.log_text())
        assert len(pids) == 1
        assert len(group_members(pids[0])) == 2  # the agent and what it spawned
        started = time.monotonic()
        assert await server.stop(number, deadline=8) == 0
        assert time.monotonic() - started < 5
        answer = await turn
        assert answer["error"]["code"] == -32012
        assert "shutting down" in answer["error"]["message"]
        for seen in (events, watching):
            await seen.wait_until(lambda e: e.is_over)
            assert any("shutting down" in comment for comment in seen.comments)
        await until(lambda: not group_members(pids[0]))


@pytest.mark.promise("P-shutdown-2")
async def test_a_stop_while_a_permission_is_open_and_a_reader_is_stalled_is_in_time_too(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token") as server,
        connected(server.url) as one,
        connected(server.url) as other,
        one.stream() as events,
    ):
        session = await one.new_session()
        turn = asyncio.create_task(one.prompt(session, "chunks 20000 500; tool"))
        await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        headers = {"X-ACP-Connection-Id": other.id, "Accept": "text/event-stream"}
        async with other.http.stream("GET", "/v1/rpc", headers=headers, timeout=None):  # opened, never read
            await events.wait_for(is_permission)
            assert await server.stop(deadline=8) == 0
        assert (await turn)["error"]["code"] == -32012


async def test_nothing_of_a_crashed_agents_group_is_left(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        session = await client.new_session()
        async with client.stream() as events:
            turn = asyncio.create_task(client.prompt(session, "spawn; hang"))
            await events.wait_until(lambda e: "spawned" in e.text())
            pid = agent_pids(server.log_text())[0]
            assert len(group_members(pid)) == 2
            os.kill(pid, signal.SIGKILL)
            await turn
        await until(lambda: not group_members(pid))
