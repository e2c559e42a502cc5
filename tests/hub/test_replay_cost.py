"""A session that is opened again is told in large pieces: what a line costs decides how long people wait for it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.stream import Stream
from support.hub import hub_here

CHUNKS = 400
APPENDING = Stream.append_own.__code__


async def ask(connection: Connection, method: str, params: dict[str, Any]) -> dict[str, Any]:
    raw = frames.request(b"1", method, params)
    async with asyncio.timeout(30):
        answer = await connection.request(frames.parse(raw), raw, timeout=None)
    result: dict[str, Any] = msgspec.json.decode(answer.line)["result"]
    return result


async def test_a_load_is_put_on_the_stream_in_few_pieces(tmp_path: Path) -> None:
    appended = 0

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal appended
        appended += event == "call" and frame.f_code is APPENDING

    async with hub_here(tmp_path) as hub:
        first, _ = await hub.open_connection(AgentId("mock"), {"protocolVersion": 1})
        session = (await ask(first, "session/new", {"cwd": "/tmp", "mcpServers": []}))["sessionId"]
        prompt = [{"type": "text", "text": f"chunks {CHUNKS} 20"}]
        await ask(first, "session/prompt", {"sessionId": session, "prompt": prompt})
        second, _ = await hub.open_connection(AgentId("mock"), {"protocolVersion": 1})
        sys.setprofile(look)
        try:
            await ask(second, "session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        finally:
            sys.setprofile(None)
        assert second.stream.last_id >= CHUNKS
        assert appended < CHUNKS / 10
