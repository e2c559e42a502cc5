"""Many turns of one session, prompted from two sides, followed through cuts: in the end everybody has the same."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from support.opencode import Heard, OpenCode, opencode
from support.rpc import connected
from support.server import running_server

TURNS = 200


class CutFollower:
    """Reads `/global/event` as the terminal UI does: it never asks for messages, and comes back after every cut."""

    def __init__(self, client: OpenCode, seed: int) -> None:
        self.heard = Heard()
        self.cuts = 0
        self._client = client
        self._random = random.Random(seed)

    async def run(self) -> None:
        while True:
            left = self._random.randint(30_000, 120_000)
            with contextlib.suppress(httpx.TransportError):
                await self._read(left)
            self.cuts += 1

    async def _read(self, left: int) -> None:
        """Read so many bytes, wherever that ends."""
        rest = b""
        async with self._client.http.stream("GET", "/opencode/global/event", timeout=None) as answer:
            async for piece in answer.aiter_raw():
                taken = piece[:left]
                left -= len(taken)
                *whole, rest = (rest + taken).split(b"\n\n")
                for block in whole:
                    self.heard.add(msgspec.json.decode(block.removeprefix(b"data: "))["payload"])
                if left <= 0:
                    return


@asynccontextmanager
async def following_along(followers: list[CutFollower]) -> AsyncIterator[None]:
    running = [asyncio.create_task(follower.run()) for follower in followers]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@pytest.mark.timeout(300)
async def test_two_who_are_cut_off_again_and_again_and_one_other_end_with_the_same_messages(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path) as server,
        opencode(server.url) as client,
        connected(server.url, "mock") as other,
    ):
        session = await client.new_session(title="Long")
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            (native,) = [one["sessionId"] for one in (await http.get("/v1/sessions")).json()["sessions"]]
        await other.call("session/resume", {"sessionId": native, "cwd": "/tmp", "mcpServers": []})
        followers = [CutFollower(client, seed) for seed in (1, 2)]
        async with other.stream() as events, following_along(followers):
            for number in range(TURNS):
                words = f"turn {number}" if number % 5 else "plan; usage; thought hm"
                if number % 2:
                    await client.prompt(session, words)
                else:
                    await other.prompt(native, words)
            messages = await client.messages(session)
            assert len(messages) == 2 * TURNS
            for follower in followers:
                await follower.heard.until(lambda heard: heard.messages(session)[-1:] == messages[-1:], 60)
                assert follower.cuts >= 5
                assert follower.heard.messages(session) == messages
            said = "".join(part["text"] for m in messages[1::2] for part in m["parts"] if part["type"] == "text")
            await events.wait_until(lambda events: events.text() == said)
