"""People at a process's terminal, over its WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect

from support.server import Server

DEADLINE = 40.0


class Screen:
    """One who watches: `frames` are the control frames, `output` what came."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.output = b""
        self.binary = 0
        self.frames: list[dict[str, Any]] = []

    async def step(self) -> None:
        message = await self.socket.recv()
        if isinstance(message, bytes):
            self.output += message
            self.binary += 1
        else:
            self.frames.append(msgspec.json.decode(message))

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(DEADLINE):
            while text not in self.output:
                await self.step()

    async def frame(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE):
            while not self.frames or self.frames[-1]["type"] != kind:
                await self.step()
        return self.frames[-1]

    async def send(self, **frame: Any) -> None:
        await self.socket.send(msgspec.json.encode(frame).decode())

    async def type(self, text: str) -> None:
        await self.send(type="input", data=text)


@asynccontextmanager
async def watching(server: Server, process: str, query: str = "", **options: Any) -> AsyncIterator[Screen]:
    address = server.url.replace("http://", "ws://") + f"/v1/processes/{process}/terminal/ws{query}"
    async with connect(address, proxy=None, max_size=None, **options) as socket:
        yield Screen(socket)


async def start_terminal(server: Server, *command: str, token: str = "", **more: Any) -> str:
    body = {"command": command[0], "args": command[1:], "tty": True, **more}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, headers=headers) as http:
        answer = await http.post("/v1/processes", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])
