"""`GET /v1/search` and its twin in JSON-RPC, with what people and programs may ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.rpc import RpcClient, connected
from support.server import running_server


@pytest.fixture
async def rpc(tmp_path: Path) -> AsyncIterator[RpcClient]:
    async with running_server(tmp_path) as server, connected(server.url) as client:
        yield client


async def search(rpc: RpcClient, words: str, **more: Any) -> dict[str, Any]:
    """What is found once everything is indexed."""
    async with asyncio.timeout(30):
        while True:
            answer = await rpc.http.get("/v1/search", params={"q": words, **more})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if found["isComplete"]:
                return found
            await asyncio.sleep(0.02)


async def test_a_hit_names_session_place_and_words(rpc: RpcClient) -> None:
    session = await rpc.new_session("/tmp")
    await rpc.prompt(session, "echo the quick brown fox")
    (found,) = (await search(rpc, "QUICK bro"))["sessions"]
    assert found["session"]["sessionId"] == session
    kinds = {hit["kind"]: hit for hit in found["hits"]}
    assert {"prompt", "message"} <= kinds.keys()
    assert [part["text"] for part in kinds["message"]["snippet"] if part["isMatch"]] == ["quick", "brown"]
    history = (await rpc.request("_sandboxagent/session/events", {"sessionId": session}))["result"]["events"]
    at = next(event for event in history if event["sequence"] == kinds["prompt"]["sequence"])
    assert at["envelope"]["method"] == "session/prompt"


async def test_json_rpc_gives_the_same_answer(rpc: RpcClient) -> None:
    session = await rpc.new_session("/tmp")
    await rpc.prompt(session, "echo a needle")
    found = await search(rpc, "needle")
    answer = await rpc.request("_sandboxagent/session/search", {"q": "needle"})
    assert answer["result"] == found


@pytest.mark.parametrize("query", [{}, {"q": ""}, {"q": "\t"}, {"q": "x" * 5000}, {"q": "a", "limit": 0}])
async def test_a_query_that_cannot_be_answered_is_refused_with_the_reason(
    rpc: RpcClient, query: dict[str, Any]
) -> None:
    answer = await rpc.http.get("/v1/search", params=query)
    assert answer.status_code == 400
    assert "q" in answer.json()["detail"] or "limit" in answer.json()["detail"]


async def test_a_query_of_a_megabyte_gets_an_answer(rpc: RpcClient) -> None:
    answer = await rpc.request("_sandboxagent/session/search", {"q": "word " * 200_000})
    assert answer["error"]["code"] == -32602
    assert (await rpc.request("_sandboxagent/session/search", {"q": ["word"]}))["error"]["code"] == -32602


async def test_a_server_without_search_says_so(tmp_path: Path) -> None:
    async with running_server(tmp_path, config="search_text_bytes = 0\n") as server, connected(server.url) as client:
        answer = await client.http.get("/v1/search", params={"q": "word"})
        assert (answer.status_code, "search_text_bytes" in answer.json()["detail"]) == (404, True)
