"""Drive one agent process over its stdio, as plainly as can be: for tests of agents without a server in between."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any


class StdioAgent:
    """Answers permission requests with the option of the kind `choose`, and collects the text of the answer."""

    def __init__(self, process: asyncio.subprocess.Process, choose: str) -> None:
        self._process = process
        self._choose = choose
        self._last_id = 0
        self.text = ""
        self.permissions: list[dict[str, Any]] = []

    async def request(self, method: str, params: dict[str, Any], *, deadline: float = 60.0) -> dict[str, Any]:
        self._last_id += 1
        await self._send({"id": self._last_id, "method": method, "params": params})
        async with asyncio.timeout(deadline):
            while True:
                message = await self._receive()
                if message.get("id") == self._last_id and "method" not in message:
                    assert "error" not in message, message["error"]
                    result: dict[str, Any] = message["result"]
                    return result
                await self._react(message)

    async def _react(self, message: dict[str, Any]) -> None:
        match message.get("method"):
            case "session/update":
                update = message["params"]["update"]
                if update.get("sessionUpdate") == "agent_message_chunk":
                    self.text += update["content"].get("text", "")
            case "session/request_permission":
                self.permissions.append(message["params"])
                option = next(o for o in message["params"]["options"] if o["kind"] == self._choose)
                outcome = {"outcome": "selected", "optionId": option["optionId"]}
                await self._send({"id": message["id"], "result": {"outcome": outcome}})
            case str() if "id" in message:
                await self._send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await self._process.stdin.drain()

    async def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert line, "the agent's output ended"
        message: dict[str, Any] = json.loads(line)
        return message


@asynccontextmanager
async def start_stdio_agent(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, choose: str = "allow_once"
) -> AsyncIterator[StdioAgent]:
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, env=dict(env), cwd=cwd, stdin=pipe, stdout=pipe, stderr=null, start_new_session=True, limit=2**24
    )
    try:
        yield StdioAgent(process, choose)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        async with asyncio.timeout(10):
            await process.communicate()
