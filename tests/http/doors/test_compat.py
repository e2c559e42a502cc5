"""The rules of `/v1/acp/{server_id}` that its client leans on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from support.doors import CompatDoorClient, client_at
from support.rpc import DEADLINE, prompt_params, sse_blocks
from support.server import Server, running_server


def http_to(server: Server) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=DEADLINE)


def request(key: Any, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def fresh() -> str:
    return f"/v1/acp/{uuid4().hex}"


async def events(http: httpx.AsyncClient, path: str, until: bytes, **headers: str) -> list[tuple[int, Any]]:
    """What a stream holds up to the event that contains `until`."""
    found: list[tuple[int, Any]] = []
    async with http.stream("GET", path, headers={"Accept": "text/event-stream", **headers}) as response:
        assert response.status_code == 200
        async for blocks in sse_blocks(response.aiter_bytes()):
            for block in blocks:
                if block[:1] == b":":
                    continue
                _, number, data = block.split(b"\n", 2)
                found.append((int(number[4:]), msgspec.json.decode(data[6:])))
                if until in data:
                    return found
    raise AssertionError("the stream ended")


async def test_stream_opened_before_the_first_message_gets_everything_from_event_one(server: Server) -> None:
    async with http_to(server) as http:
        path = fresh()
        early = asyncio.create_task(events(http, path, b'"id":2'))
        async with http.stream("GET", path, headers={"Accept": "text/event-stream"}) as held:
            assert held.status_code == 200, "its headers come at once"
            await http.post(f"{path}?agent=mock", json=request(0, "initialize", {"protocolVersion": 1}))
        new = await http.post(path, json=request(1, "session/new", {"cwd": "/tmp", "mcpServers": []}))
        session = new.json()["result"]["sessionId"]
        answer = await http.post(path, json=request(2, "session/prompt", prompt_params(session, "first words")))
        seen = await early
        assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
        answers = [message for _, message in seen if "method" not in message]
        assert [message["id"] for message in answers] == [0, 1, 2], "answers are on the stream too"
        assert answers[2] == answer.json()
        again = await events(http, path, b'"id":2')
        assert again == seen, "without Last-Event-ID everything is replayed"
        assert await events(http, path, b'"id":2', **{"Last-Event-ID": "2"}) == seen[2:]


async def test_two_readers_of_one_server_get_the_same(server: Server) -> None:
    async with client_at("compat", server.url) as client, http_to(server) as http:
        second = asyncio.create_task(events(http, client.path, b'"stopReason"'))
        session = await client.new_session()
        await client.prompt(session, "for both")
        assert "for both" in "".join(
            m["params"]["update"]["content"]["text"]
            for _, m in await second
            if m.get("method") == "session/update" and m["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
        )
        await client.events.wait_until(lambda e: "for both" in e.text())


async def test_first_message_needs_an_agent_that_exists_and_later_ones_no_other(server: Server) -> None:
    async with http_to(server) as http:
        path = fresh()
        hello = request(0, "initialize", {"protocolVersion": 1})
        assert (await http.post(path, json=hello)).status_code == 400
        assert (await http.post(f"{path}?agent=nobody", json=hello)).status_code == 400
        assert (await http.post(f"{path}?agent=mock", json=hello)).status_code == 200
        assert (await http.post(f"{path}?agent=mock", json=request(1, "session/list", {}))).status_code == 200
        assert (await http.post(f"{path}?agent=other", json=request(2, "session/list", {}))).status_code == 409


async def test_notifications_and_answers_are_accepted(server: Server) -> None:
    async with http_to(server) as http:
        path = fresh()
        await http.post(f"{path}?agent=mock", json=request(0, "initialize", {"protocolVersion": 1}))
        notification = {"jsonrpc": "2.0", "method": "_anything", "params": {}}
        assert (await http.post(path, json=notification)).status_code == 202
        assert (await http.post(path, json={"jsonrpc": "2.0", "id": 99, "result": {}})).status_code == 202


async def test_servers_are_listed_until_they_are_deleted(own_server: Server) -> None:
    async with http_to(own_server) as http:
        assert (await http.get("/v1/acp")).json() == {"servers": []}
        await http.post("/v1/acp/mine?agent=mock", json=request(0, "initialize", {"protocolVersion": 1}))
        [listed] = (await http.get("/v1/acp")).json()["servers"]
        assert (listed["serverId"], listed["agent"]) == ("mine", "mock")
        assert listed["createdAtMs"] > 1_600_000_000_000
        assert (await http.delete("/v1/acp/mine")).status_code == 204
        assert (await http.delete("/v1/acp/mine")).status_code == 204
        assert (await http.get("/v1/acp")).json() == {"servers": []}


async def test_delete_answers_at_once_while_a_turn_runs_and_ends_the_stream(own_server: Server) -> None:
    async with client_at("compat", own_server.url) as client:
        assert isinstance(client, CompatDoorClient)
        session = await client.new_session()
        client.start_prompt(session, "slow")
        await client.events.wait_until(lambda e: "tick 1" in e.text())
        await client.close()
        async with asyncio.timeout(DEADLINE):
            await client._streams[None]


async def test_agent_that_fails_to_start_is_an_answer_not_a_status(tmp_path: Path) -> None:
    config = '[agents.broken]\ncommand = ["/nonexistent/agent"]\n'
    async with running_server(tmp_path / "server", config=config) as server, http_to(server) as http:
        response = await http.post(f"{fresh()}?agent=broken", json=request(0, "initialize", {"protocolVersion": 1}))
        assert response.status_code == 200
        assert response.json()["error"]["message"]
        assert (await http.get("/v1/acp")).json() == {"servers": []}


async def test_exit_of_the_agent_is_told_as_its_client_understands_it(own_server: Server) -> None:
    async with client_at("compat", own_server.url) as client:
        session = await client.new_session()
        assert (await client.prompt(session, "crash 7"))["error"]["data"]["exitCode"] == 7
        told = await client.events.wait_for(lambda m: m["method"] == "_adapter/agent_exited")
        assert told["params"] == {"success": False, "code": 7}


async def test_stream_that_waits_for_its_server_ends_with_a_reason_at_shutdown(own_server: Server) -> None:
    async with http_to(own_server) as http, http.stream("GET", fresh()) as held:
        chunks = held.aiter_bytes()
        assert await anext(chunks) == b": open\n\n"
        assert await own_server.stop() == 0
        assert b"".join([chunk async for chunk in chunks]) == b": end: server is shutting down\n\n"
