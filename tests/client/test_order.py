"""What the server sent before an answer has been seen when the answer is."""

from __future__ import annotations

import asyncio

import httpx
import msgspec
import pytest

from sandbox_agent.client.connection import AgentConnection


async def test_updates_before_an_answer_are_taken_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all of it came before the request's own POST had returned."""
    async with httpx.AsyncClient() as http:
        connection = AgentConnection(http, "mock", on_permission=None, on_question=None, retry_for=0.0)

        async def send(raw: bytes) -> None:
            request = msgspec.json.decode(raw)
            update = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {}}}
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": {}}
            await connection._deliver([msgspec.json.encode(message) for message in (update, update, answer)])
            await asyncio.sleep(0)

        monkeypatch.setattr(connection.rpc, "send", send)
        inbox = connection.inbox("s", "/tmp")
        inbox.replay = []
        await connection.call("session/load", {"sessionId": "s"})
        assert len(inbox.replay) == 2
        await connection.close()
