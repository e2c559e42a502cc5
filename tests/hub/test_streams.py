"""Rule 7: nothing is lost silently."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import httpx
import pytest

from support.rpc import CONNECTION, Events, RpcClient, connected, prompt_params, sse_blocks
from support.server import Server, running_server

MANY = 100_000


def numbers(texts: list[str]) -> list[int]:
    return [int(text.split(" ", 1)[0]) for text in texts]


def chunk_numbers(events: Events) -> list[int]:
    updates = events.updates("agent_message_chunk")
    return numbers([update["content"]["text"] for update in updates])


@pytest.mark.promise("P-stream-2")
async def test_100_000_updates_of_one_prompt_arrive_complete_and_in_order(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        answer = await client.prompt(session, f"chunks {MANY} 100")
        assert answer["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: len(e.ids) > MANY, deadline=50)
    assert chunk_numbers(events) == list(range(1, MANY + 1))
    assert events.ids == list(range(1, len(events.ids) + 1))


async def test_a_reader_that_stalls_for_five_seconds_gets_everything(server: Server) -> None:
    async with connected(server.url) as client:
        session = await client.new_session()
        got: list[int] = []
        stalled = asyncio.Event()

        async def read() -> None:
            headers = {CONNECTION: client.id, "Accept": "text/event-stream"}
            async with client.http.stream("GET", "/v1/rpc", headers=headers, timeout=None) as response:
                async for blocks in sse_blocks(response.aiter_bytes()):
                    got.extend(_number(block) for block in blocks if b"agent_message_chunk" in block)
                    if len(got) > MANY // 4 and not stalled.is_set():
                        stalled.set()
                        await asyncio.sleep(5)
                    if len(got) == MANY:
                        return

        reading = asyncio.create_task(read())
        async with asyncio.timeout(50):
            answer = await client.prompt(session, f"chunks {MANY} 100")
            assert answer["result"]["stopReason"] == "end_turn"
            await reading
        assert stalled.is_set()
        assert got == list(range(1, MANY + 1))


@pytest.mark.promise("P-stream-3")
async def test_a_stalled_reader_delays_neither_the_agent_nor_others(server: Server) -> None:
    async with connected(server.url) as stalled, connected(server.url) as other:
        session = await stalled.new_session()
        headers = {CONNECTION: stalled.id, "Accept": "text/event-stream"}
        async with stalled.http.stream("GET", "/v1/rpc", headers=headers, timeout=None):  # never reads on
            await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
            async with other.stream() as events:
                await stalled.prompt(session, "chunks 50000 100")
                await events.wait_until(lambda e: len(e.updates("agent_message_chunk")) == 50_000, deadline=50)
    assert chunk_numbers(events) == list(range(1, 50_001))


@pytest.mark.promise("P-stream-1")
async def test_a_reader_that_is_cut_ten_times_gets_everything_once(client: RpcClient) -> None:
    session = await client.new_session()
    rng = random.Random(7)
    cuts = sorted(rng.sample(range(1000, MANY - 1000), 10))
    params = prompt_params(session, f"chunks {MANY} 100")
    message = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params}
    assert (await client.post(message, Prefer="respond-async")).status_code == 202
    got: list[int] = []
    ids: list[int] = []
    async with asyncio.timeout(55):
        for cut in [*cuts, MANY]:
            await _read_until(client, cut, got, ids)
    assert got == list(range(1, MANY + 1))
    assert ids == list(range(1, len(ids) + 1))


async def _read_until(client: RpcClient, cut: int, got: list[int], ids: list[int]) -> None:
    """Read on from the last id that was handled, and drop the socket in the middle of a burst."""
    headers = {CONNECTION: client.id, "Accept": "text/event-stream", "Last-Event-ID": str(ids[-1] if ids else 0)}
    async with (
        httpx.AsyncClient(base_url=client.http.base_url, trust_env=False) as http,
        http.stream("GET", "/v1/rpc", headers=headers, timeout=None) as response,
    ):
        async for blocks in sse_blocks(response.aiter_bytes()):
            for block in blocks:
                if block.startswith(b":"):
                    continue
                ids.append(int(block.split(b"\n")[1].removeprefix(b"id: ")))
                if b"agent_message_chunk" in block:
                    got.append(_number(block))
                    if len(got) == cut:
                        return


def _number(block: bytes) -> int:
    return int(block.split(b'"text":"', 1)[1].split(b" ", 1)[0])


@pytest.mark.promise("P-stream-4")
async def test_two_readers_of_one_session_both_see_every_update(server: Server) -> None:
    async with (
        connected(server.url) as one,
        connected(server.url) as other,
        one.stream() as seen_by_one,
        other.stream() as seen_by_other,
    ):
        session = await one.new_session()
        await other.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        await one.prompt(session, "chunks 2000 10")
        for events in (seen_by_one, seen_by_other):
            await events.wait_until(lambda e: len(e.updates("agent_message_chunk")) == 2000)
            assert chunk_numbers(events) == list(range(1, 2001))
        asked = seen_by_other.updates("user_message_chunk")
        assert asked[0]["content"]["text"] == "chunks 2000 10"
        assert not seen_by_one.updates("user_message_chunk")
        for events in (seen_by_one, seen_by_other):
            ended = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_ended")
            assert ended["params"]["result"] == {"stopReason": "end_turn"}


@pytest.mark.promise("P-agent-3")
async def test_lines_that_are_no_messages_are_reported_and_the_bridge_lives(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        for word in ("garbage", "badutf8", "deep", "unknown-answer", "double-answer"):
            answer = await client.prompt(session, word)
            assert answer["result"]["stopReason"] == "end_turn", word
        await client.prompt(session, "still here")
        await events.wait_until(lambda e: "still here" in e.text())
    unparsed = [m["params"] for m in events.messages if m.get("method") == "_sandboxagent/agent/unparsed"]
    assert len(unparsed) == 3
    for params in unparsed:
        assert params["error"]
        assert params["location"] == "stdout"
        assert len(params["raw_hash"]) == 64
        assert params["_meta"]["sandboxagent.dev"]["rawHash"] == params["raw_hash"]
        assert params["sessionId"] == session, "the only one with a turn"


async def test_a_line_of_20_mb_passes(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        await client.prompt(session, "bigline 20")
        await events.wait_until(lambda e: len(e.text()) >= 20_000_000)


async def test_a_line_over_the_cap_is_reported_and_the_bridge_lives(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="max_line_bytes = 1000000\n") as server,
        connected(server.url) as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        await client.prompt(session, "bigline 2")
        notice = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/agent/unparsed")
        assert "over the limit" in notice["params"]["error"]
        await client.prompt(session, "alive")
        await events.wait_until(lambda e: "alive" in e.text())


async def test_half_of_a_surrogate_pair_passes_from_client_to_agent_and_back(client: RpcClient) -> None:
    session = await client.new_session()
    raw = (
        b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"%b","prompt":'
        b'[{"type":"text","text":"broken \\ud83d emoji"}]}}' % session.encode()
    )
    async with client.stream() as events:
        response = await client.post(raw)
        assert response.json()["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: "emoji" in e.text())
