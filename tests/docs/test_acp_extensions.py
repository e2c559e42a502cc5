"""docs/acp-extensions.md names every extension method, and each request printed there works."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.core.frames import META
from sandbox_agent.core.methods import QUESTION
from sandbox_agent.hub.clients.request import Ours
from sandbox_agent.hub.sessions.establish import Wishes
from sandbox_agent.hub.sessions.views import SessionSummary
from support.rpc import RpcClient, connected
from support.samples import ROOT, Sample, samples
from support.server import Server

PAGE = ROOT / "docs" / "acp-extensions.md"
REQUESTS = [one for one in samples("json") if one.page == PAGE.stem]


async def test_the_page_has_an_example_of_every_extension_method_of_the_server(server: Server) -> None:
    async with connected(server.url) as rpc:
        known = await rpc.request("_sandboxagent/nope", {})
    names = known["error"]["message"].partition("there are: ")[2].split(", ")
    shown = {json.loads(one.text)["method"] for one in REQUESTS}
    assert "_sandboxagent/session/events" in names
    assert [name for name in names if name not in shown] == [], "each is shown in a request"


def _documented() -> set[str]:
    """The names in the table of fields."""
    table = PAGE.read_text().partition("## Fields")[2].partition("```")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row[2])}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def test_the_page_has_every_field_that_requests_may_have() -> None:
    wishes = {_camel(name) for struct in (Ours, Wishes) for name in struct.__struct_fields__}
    asked_for = set(re.findall(r'wants\(\w+, "(\w+)"\)', _source("hub/clients")))
    assert asked_for >= {"asSpoken", "itemCompleted", "legacyEvents"}
    assert (wishes | asked_for) - _documented() == set()


def test_the_page_has_every_field_that_the_server_sets() -> None:
    listed = {_camel(name) for name in SessionSummary.__struct_fields__}
    of_acp = {"sessionId", "cwd", "additionalDirectories", "title", "updatedAt"}
    said = {
        key.value
        for tree in map(ast.parse, _sources(""))
        for found in ast.walk(tree)
        if isinstance(found, ast.Dict)
        for name, value in zip(found.keys, found.values, strict=True)
        if isinstance(name, ast.Name) and name.id == "META" and isinstance(value, ast.Dict)
        for key in value.keys
        if isinstance(key, ast.Constant)
    }
    assert said >= {"replayed", "rawHash", "metadata"}
    assert ((listed - of_acp) | said) - {
        "status"
    } - _documented() == set()  # `status` is of answers to questions: below


async def test_the_page_has_every_field_that_a_whole_conversation_shows(server: Server, tmp_path: Path) -> None:
    seen: set[str] = set()
    async with connected(server.url) as rpc, rpc.stream() as events:
        session = await rpc.new_session(str(tmp_path), permissionMode="allow", model="mock-large", title="t")
        await rpc.prompt(session, "tool ls; plan", turnId="t1")
        await rpc.prompt(session, "garbage")
        answers = [
            await rpc.request("session/list", {}),
            await rpc.request("_sandboxagent/session/events", {"sessionId": session}),
            await rpc.request("session/prompt", {"sessionId": "no-such", "prompt": []}),
            await rpc.request("_sandboxagent/session/terminate", {"sessionId": session}),
            await rpc.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}),
        ]
        await events.wait_for(lambda message: message.get("method") == "_sandboxagent/session/ended")
        await events.wait_for(lambda message: "replayed" in _ours(message))
        for message in [rpc.initialized, *answers, *events.messages]:
            seen |= _ours(message)
    assert seen >= {"automatic", "replayed", "sessionEnd", "errorType", "readOnly"}
    assert seen - _documented() == set()


def _ours(value: Any) -> set[str]:
    """The names under our key, wherever it is."""
    if isinstance(value, list):
        return {name for one in value for name in _ours(one)}
    if not isinstance(value, dict):
        return set()
    below = {name for one in value.values() for name in _ours(one)}
    ours = value.get("_meta", {}).get(META, {}) if isinstance(value.get("_meta"), dict) else {}
    return below | set(ours)


def _sources(folder: str) -> list[str]:
    not_the_server = {"client", "cli", "mock_agent"}
    files = (ROOT / "src" / "sandbox_agent" / folder).rglob("*.py")
    return [file.read_text() for file in files if not_the_server.isdisjoint(file.parts)]


def _source(folder: str) -> str:
    return "\n".join(_sources(folder))


@pytest.mark.parametrize("sample", REQUESTS, ids=lambda one: json.loads(one.text)["method"])
async def test_the_request_works(server: Server, client: RpcClient, tmp_path: Path, sample: Sample) -> None:
    session = await client.new_session(str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("hello")
    text = sample.text.replace("SESSION", session)
    if "PROCESS" in text:
        started = await client.call("_sandboxagent/process/start", {"command": "cat", "tty": True})
        text = text.replace("PROCESS", started["id"])
        if "process/delete" in text:
            await client.call("_sandboxagent/process/kill", {"processId": started["id"], "waitMs": 30_000})
    asked: dict[str, Any] = json.loads(text)
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
