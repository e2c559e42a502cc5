"""Many processes, killed at random, and the server with them: nobody is left, and no log has a hole."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox_agent.process import table
from support.server import Server, running_server

_SCRIPT = "sleep 1000 & i=0; while :; do i=$((i+1)); echo line $i; sleep 0.%d; done"


async def _start(http: httpx.AsyncClient, number: int) -> dict[str, Any]:
    body = {"command": "sh", "args": ["-c", _SCRIPT % (number % 9 + 1)], "tty": number % 3 == 0}
    answer = await http.post("/v1/processes", json=body)
    assert answer.status_code == 200, answer.text
    info: dict[str, Any] = answer.json()
    return info


async def _check_log(http: httpx.AsyncClient, process: str) -> int:
    log = (await http.get(f"/v1/processes/{process}/logs")).json()
    numbers = [entry["sequence"] for entry in log["entries"]]
    assert numbers == list(range(1, len(numbers) + 1))
    lines = b"".join(base64.b64decode(entry["data"]) for entry in log["entries"]).split(b"\n")[:-1]
    assert [line.strip() for line in lines] == [b"line %d" % number for number in range(1, len(lines) + 1)]
    return len(lines)


def _client(server: Server) -> httpx.AsyncClient:
    each_anew = httpx.Limits(max_keepalive_connections=0)  # one that is idle may be closed in the moment it is used
    return httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30, limits=each_anew)


@pytest.mark.promise("P-process-2")
async def test_of_64_processes_killed_at_random_with_the_server_none_is_left(tmp_path: Path) -> None:
    chance = random.Random(64)
    sessions: set[int] = set()
    ids: list[str] = []
    for is_last in (False, True):
        async with running_server(tmp_path) as server, _client(server) as http:
            listed = {info["id"]: info for info in (await http.get("/v1/processes")).json()["processes"]}
            assert [listed[process]["status"] for process in ids] == ["exited"] * len(ids)
            started = await asyncio.gather(*(_start(http, number) for number in range(16 if is_last else 64)))
            sessions |= {info["pid"] for info in started}
            refused = await http.post("/v1/processes", json={"command": "true"})
            assert refused.status_code == (200 if is_last else 409)
            victims = chance.sample(started, len(started) // 3)
            await asyncio.gather(*(http.post(f"/v1/processes/{info['id']}/kill?waitMs=20000") for info in victims))
            shown = (await http.get("/v1/processes")).json()["processes"]
            ended = {info["id"]: info for info in shown if info["status"] == "exited"}
            assert {info["id"] for info in victims} <= ended.keys()
            assert all("signal" in info or "exitCode" in info for info in ended.values())
            await _no_zombies(server.pid)
            ids = [info["id"] for info in started]
            if not is_last:
                server.kill()
                await server.process.wait()
    _nobody_left(sessions)
    async with running_server(tmp_path) as server, _client(server) as http:
        lines = [await _check_log(http, process) for process in ids]
        assert sum(lines) > 16
        shown = (await http.get("/v1/processes")).json()["processes"]
        assert all("signal" in info or "exitCode" in info for info in shown)


def _nobody_left(sessions: set[int]) -> None:
    left = [process for process in table.everyone().values() if process.session in sessions]
    assert left == []


async def _no_zombies(server: int) -> None:
    """What was left to the server by its children is reaped every few seconds."""
    async with asyncio.timeout(30):
        while any(_is_zombie(pid) for pid in _children(server)):
            await asyncio.sleep(0.1)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += [int(child) for child in listing.read_text().split()]
    return found


def _is_zombie(pid: int) -> bool:
    process = table.look(pid)
    return process is not None and process.is_dead
