"""A history that cannot be read for a while: whoever is told something is told it once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import StoreError
from support.hub import hub_here


async def test_a_new_session_is_answered_once_though_its_history_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> list[Any]:
        raise StoreError("disk I/O error")

    async with hub_here(tmp_path) as hub, asyncio.timeout(30):
        connection, _ = await hub.open_connection(AgentId("mock"), {})
        monkeypatch.setattr(hub.store, "read", fail)
        raw = frames.request(b"7", "session/new", {"cwd": "/tmp", "mcpServers": []})
        connection.submit(frames.parse(raw), raw)
        reader = connection.stream.read_from(0)
        seen: list[dict[str, Any]] = []
        while not any(message.get("method") == "_sandboxagent/error" for message in seen):
            batch = await reader.take(wait=1)
            seen += map(msgspec.json.decode, batch.lines if batch is not None else [])
        await asyncio.sleep(0.05)
        batch = await reader.take(wait=0)
        seen += map(msgspec.json.decode, batch.lines if batch is not None else [])
        assert [message for message in seen if message.get("id") == 7] == seen[:1]
        assert seen[0]["result"]["sessionId"] == seen[1]["params"]["sessionId"]
