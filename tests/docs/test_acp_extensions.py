"""docs/acp-extensions.md names every extension method, and each request printed there works."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.core.methods import QUESTION
from support.rpc import RpcClient, connected
from support.samples import ROOT, Sample, samples
from support.server import Server

PAGE = ROOT / "docs" / "acp-extensions.md"
REQUESTS = [one for one in samples("json") if one.page == PAGE.stem]


async def test_the_page_names_every_extension_method_of_the_server(server: Server) -> None:
    async with connected(server.url) as rpc:
        known = await rpc.request("_sandboxagent/nope", {})
    names = known["error"]["message"].partition("there are: ")[2].split(", ")
    assert "_sandboxagent/session/events" in names
    assert [name for name in names if name not in PAGE.read_text()] == []


@pytest.mark.parametrize("sample", REQUESTS, ids=lambda one: json.loads(one.text)["method"])
async def test_the_request_works(server: Server, client: RpcClient, tmp_path: Path, sample: Sample) -> None:
    session = await client.new_session(str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("hello")
    asked: dict[str, Any] = json.loads(sample.text.replace("SESSION", session))
    answer = await client.request(asked["method"], asked["params"], id=asked["id"])
    assert "result" in answer, answer
    if asked["method"] == "session/new":
        ours = answer["result"]["_meta"]["sandboxagent.dev"]
        assert ours["alias"] == "my-session"
        assert ours["model"] == {"applied": True, "value": "mock-large"}


async def test_a_question_is_answered_as_the_page_says(client: RpcClient) -> None:
    (response,) = (one.text for one in samples("text") if one.page == PAGE.stem)
    session = await client.new_session()
    async with client.stream() as events:
        prompted = asyncio.create_task(client.prompt(session, "question"))
        asked = await events.wait_for(lambda message: message.get("method") == QUESTION)
        option = asked["params"]["options"][0]["id"]
        filled = json.loads(response.replace("ID", json.dumps(asked["id"])).replace("OPTION", option))
        await client.answer(asked, filled["result"])
        assert (await prompted)["result"]["stopReason"] == "end_turn"
        assert option in events.text()
