"""Slash commands of agents at `/opencode`: listed, run, and used for what OpenCode has endpoints for."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from support import commanding_agent
from support.opencode import OpenCode, following, opencode
from support.server import running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONFIG = "".join(
    f"[agents.{name}]\ncommand = {[sys.executable, commanding_agent.__file__, *commands]!r}\n"
    for name, commands in {
        "silent": [],
        "able": ["compact", "init", "undo"],
        "unable": ["review"],
        "early": ["review", "explain"],
    }.items()
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OpenCode]:
    home = tmp_path_factory.mktemp("commands")
    async with running_server(home, config=CONFIG) as server, opencode(server.url) as opened:
        yield opened


def text_of(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")


async def said(client: OpenCode, session: str) -> list[str]:
    return [text_of(message) for message in await client.messages(session)]


async def test_the_commands_are_known_before_the_first_session(client: OpenCode) -> None:
    """The terminal UI asks for them once, when it starts."""
    listed = await client.get("/agents/early/command")
    assert [command["name"] for command in listed] == ["review", "explain"]
    listed = await client.get("/agents/silent/command")
    assert listed == []


async def test_the_commands_listed_are_those_of_the_clients_agent(client: OpenCode) -> None:
    for agent, names in {"able": ["compact", "init", "undo"], "unable": ["review"]}.items():
        await client.prompt(await client.new_session(agent), "hello")
        listed = await client.get(f"/agents/{agent}/command")
        assert [command["name"] for command in listed] == names
        assert listed[0]["description"] == f"The command {names[0]}"
        assert listed[0]["template"] == f"/{names[0]} $ARGUMENTS"


async def test_summarize_and_init_are_commands_of_agents_that_have_them(client: OpenCode) -> None:
    session = await client.new_session("able")
    await client.prompt(session, "hello")  # the agent has announced its commands when it has answered
    chosen = {"providerID": "able", "modelID": "default"}
    assert await client.post(f"/session/{session}/summarize", chosen) is True
    assert await client.post(f"/session/{session}/init", {**chosen, "messageID": "msg_x"}) is True
    assert (await said(client, session))[::2] == ["hello", "/compact", "/init"]


async def test_undo_is_a_command_of_agents_that_have_it_and_undoes_turn_by_turn(client: OpenCode) -> None:
    session = await client.new_session("able", title="Undone")
    for words in ("one", "two"):
        await client.prompt(session, words)
    for remembered in ("one", ""):
        newest = (await client.messages(session))[-2]["info"]["id"]
        answer = await client.post(f"/session/{session}/revert", {"messageID": newest})
        assert (answer["id"], answer["title"]) == (session, "Undone")
        assert (await said(client, session))[-2:] == ["/undo", f"remembered: {remembered}"]
    assert (await client.post(f"/session/{session}/unrevert"))["id"] == session
    assert (await said(client, session))[:4] == ["one", "remembered: one", "two", "remembered: one two"]


async def test_what_an_agent_cannot_undo_is_refused_and_changes_nothing(client: OpenCode) -> None:
    session = await client.new_session("able")
    for words in ("one", "two"):
        await client.prompt(session, words)
    before = await client.messages(session)
    first, newest = before[0]["info"]["id"], before[2]["info"]["id"]
    part = before[2]["parts"][0]["id"]
    bodies: list[Any] = [
        {},
        {"messageID": "x"},
        {"messageID": first},
        {"messageID": "msg_x"},
        {"messageID": newest, "partID": part},
    ]
    for body in bodies:
        refused = await client.http.post(f"/opencode/session/{session}/revert", json=body)
        assert (refused.status_code, refused.json()["name"]) == (400, "BadRequest")
    assert await client.messages(session) == before


@pytest.mark.parametrize("path", ["revert", "summarize", "init"])
async def test_agents_without_the_command_refuse(client: OpenCode, path: str) -> None:
    session = await client.new_session("unable")
    answer = await client.prompt(session, "one")
    body = {"messageID": answer["info"]["parentID"]}
    refused = await client.http.post(f"/opencode/session/{session}/{path}", json=body)
    assert (refused.status_code, refused.json()["name"]) == (400, "BadRequest")
    assert "agent 'unable' has no command" in refused.json()["data"]["message"]
    assert len(await client.messages(session)) == 2


async def test_a_session_that_works_is_not_undone(client: OpenCode) -> None:
    session = await client.new_session("able")
    async with following(client) as heard:
        await client.prompt_async(session, "hang")
        await heard.until(lambda heard: len(heard.messages(session)) == 2)
        newest = (await client.messages(session))[0]["info"]["id"]
        refused = await client.http.post(f"/opencode/session/{session}/revert", json={"messageID": newest})
        assert (refused.status_code, refused.json()["_tag"]) == (409, "SessionBusyError")
        assert refused.json()["sessionID"] == session
        await client.post(f"/session/{session}/abort")
        await heard.until(lambda heard: session in [one["sessionID"] for one in heard.of("session.idle")])
