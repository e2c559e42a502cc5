"""Sessions that an agent makes by itself are sessions as others are: heard, kept, asked for, and never mixed up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from support.rpc import Events, Message, RpcClient, connected, is_permission, option_of_kind
from support.server import Server, mock_agents, running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

each_version = pytest.mark.parametrize("version", [1, 2])
each_agent = pytest.mark.parametrize("agent", ["one", "two", "apart"])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """`one` and `two` speak that version, in one process; `apart` speaks 2 in a process for each session."""
    apart = mock_agents(apart="--protocol 2").replace('"process"', '"session"')
    config = mock_agents(one="", two="--protocol 2") + "\n" + apart
    async with running_server(tmp_path_factory.mktemp("home"), "--no-token", config=config) as running:
        yield running


async def _helped(client: RpcClient, events: Events, session: str, text: str) -> Message:
    """Prompt for a subagent, and allow what it asks; gives its request."""
    turn = asyncio.create_task(client.prompt(session, f"subagent {text}"))
    asked = await events.wait_for(is_permission)
    await client.answer(asked, option_of_kind(asked, "allow_once"))
    await turn
    await events.wait_until(lambda e: "The subagent was answered yes-once." in e.text())
    return asked


@each_agent
@each_version
async def test_a_subagent_is_heard_asked_and_kept_in_a_session_of_its_own(
    server: Server, agent: str, version: int
) -> None:
    async with connected(server.url, agent, version=version) as client, client.stream() as events:
        session = await client.new_session()
        asked = await _helped(client, events, session, "count to three")
        child = asked["params"]["sessionId"]
        assert child != session
        assert [update["sessionId"] for update in events.updates("subagent_update")] == [child]
        said = [m for m in events.messages if "count to three (yes-once)" in str(m)]
        assert [message["params"]["sessionId"] for message in said] == [child]
        listed = await client.call("session/list", {})
        ours = {one["sessionId"]: one["_meta"]["sandboxagent.dev"] for one in listed["sessions"]}
        assert ours[child]["metadata"] == {"subagentOf": session}
    async with connected(server.url, agent, version=version) as reader, reader.stream() as replayed:
        params = {"sessionId": child, "cwd": "/tmp", "mcpServers": []}
        if version == 1:
            await reader.call("session/load", params)
        else:
            await reader.call("session/resume", {**params, "replayFrom": {"type": "start"}})
        await replayed.wait_until(lambda e: "count to three" in e.text())
        assert "The subagent was answered" not in str(replayed.messages)


async def test_who_comes_later_hears_the_subagent_too_and_may_answer_it(server: Server) -> None:
    async with (
        connected(server.url, "two", version=2) as first,
        connected(server.url, "two", version=1) as later,
        first.stream() as events,
        later.stream() as later_events,
    ):
        session = await first.new_session()
        await first.prompt(session, "subagent go on")
        await events.wait_for(is_permission)
        await later.call("session/resume", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        asked = await later_events.wait_for(is_permission)
        assert asked["params"]["toolCall"]["toolCallId"] == "help-1"
        await later.answer(asked, option_of_kind(asked, "reject_once"))
        for seen in (events, later_events):
            await seen.wait_until(lambda e: "go on (no-once)" in e.text())


async def test_a_subagent_of_a_process_of_one_session_does_not_end_that_process(server: Server) -> None:
    async with connected(server.url, "apart", version=2) as client, client.stream() as events:
        session = await client.new_session()
        child = (await _helped(client, events, session, "x"))["params"]["sessionId"]
        await client.request("session/close", {"sessionId": child})
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            status = (await http.get("/v1/agents/apart")).json()["serverStatus"]
        assert session in [process["session"] for process in status["processes"]]
        assert len({process["pid"] for process in status["processes"]}) == len(status["processes"])
        before = len(events.messages)
        await client.prompt(session, "still here")
        await events.wait_for(lambda message: "still here" in str(message), after=before)
