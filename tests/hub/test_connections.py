"""How connections end: closed by their client, or forgotten by everybody."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sandbox_agent.core.ids import ConnectionId, connection_stream
from sandbox_agent.hub.clients.stream import Stream
from sandbox_agent.store import MemoryStore
from support.rpc import CONNECTION, RpcClient, connected, prompt_params
from support.server import running_server
from support.store_words import KEEP_ALL


async def test_a_request_that_waits_is_answered_when_its_connection_is_closed(client: RpcClient) -> None:
    session = await client.new_session()
    message = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": prompt_params(session, "slow 1000")}
    async with client.stream() as events:
        waiting = asyncio.create_task(client.post(message))
        await events.wait_until(lambda e: "tick 1" in e.text())
        await client.close()
        async with asyncio.timeout(5):
            response = await waiting
    assert response.status_code == 404
    assert response.json()["type"].endswith("unknown_connection")


async def test_connections_that_nobody_uses_are_closed_and_those_that_are_read_stay(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="connection_idle_ms = 500\n") as server,
        connected(server.url) as idle,
        connected(server.url) as read,
        read.stream() as events,
    ):
        session = await idle.new_session()
        async with asyncio.timeout(20):
            while (
                await read.http.get("/v1/rpc", headers={CONNECTION: idle.id, "Last-Event-ID": "x"})
            ).status_code != 404:
                await asyncio.sleep(0.1)  # 400 as long as the connection is there: asking so does not use it
        assert not events.is_over
        await read.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})


async def test_an_answer_that_comes_after_the_close_begins_no_record_of_it_anew() -> None:
    store = MemoryStore(retention=KEEP_ALL)
    own = connection_stream(ConnectionId("c"))
    stream = Stream(store, own, memory_limit=1 << 20)
    stream.append_own([b"{}"])
    stream.end("connection closed")
    await store.drop(own)
    stream.append_own([b"{}"])
    assert store.last_sequence(own) == 0
    assert stream.last_id == 1
