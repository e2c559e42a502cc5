"""Clients and agents of either version of ACP in one conversation: each sees all of it in its own words."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from support.rpc import Events, Message, RpcClient, connected, is_permission, option_of_kind
from support.server import Server, running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT = Path(__file__).parent.parent / "support" / "versioned_agent.py"
AGENTS = {"one": "only-1", "two": "only-2"}
"""Agents by name: `one` speaks version 1, `two` speaks 2."""

each_client = pytest.mark.parametrize("version", [1, 2])
each_agent = pytest.mark.parametrize("agent", AGENTS)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    tables = [f"[agents.{name}]\ncommand = {[sys.executable, str(AGENT), word]!r}\n" for name, word in AGENTS.items()]
    async with running_server(tmp_path_factory.mktemp("home"), "--no-token", config="\n".join(tables)) as running:
        yield running


def states(events: Events) -> list[str]:
    return [update["state"] for update in events.updates("state_update")]


def is_idle(events: Events) -> bool:
    return states(events)[-1:] == ["idle"]


async def run(client: RpcClient, events: Events, session: str, text: str) -> Message:
    """Prompt and wait for the end of the turn, as each version tells it; gives `{"result"}` or `{"error"}`."""
    if client.initialized["protocolVersion"] == 1:
        return await client.prompt(session, text)
    before = len(events.messages)
    answer = await client.prompt(session, text)
    assert answer["result"]["messageId"]
    idle = await events.wait_for(_is_end, after=before)
    update = idle["params"]["update"]
    return (
        {"error": update["error"]}
        if "error" in update
        else {"result": {"stopReason": update.get("stopReason", "end_turn")}}
    )


def _is_end(message: Message) -> bool:
    update = message.get("params", {}).get("update", {})
    return bool(update.get("sessionUpdate") == "state_update" and update["state"] == "idle")


@each_client
@each_agent
async def test_a_turn_with_a_permission_runs_to_its_end(server: Server, agent: str, version: int) -> None:
    async with connected(server.url, agent, version=version) as client, client.stream() as events:
        session = await client.new_session()
        turn = asyncio.create_task(run(client, events, session, "ask"))
        asked = await events.wait_for(is_permission)
        subject = asked["params"]["toolCall"] if version == 1 else asked["params"]["subject"]["toolCall"]
        assert (subject["toolCallId"], subject["kind"]) == ("t", "edit")
        assert ("title" in asked["params"]) is (version == 2)
        await client.answer(asked, option_of_kind(asked, "allow_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        assert '"allow_once"' in events.text()
        assert len(events.updates("tool_call" if version == 1 else "tool_call_update")) == 1
        if version == 2:
            assert states(events) == ["running", "requires_action", "running", "idle"]
            assert [update["content"][0]["text"] for update in events.updates("user_message")] == ["ask"]
        else:
            assert not states(events)


@each_client
@each_agent
async def test_a_cancel_ends_the_turn_as_cancelled(server: Server, agent: str, version: int) -> None:
    async with connected(server.url, agent, version=version) as client, client.stream() as events:
        session = await client.new_session()
        turn = asyncio.create_task(run(client, events, session, "wait"))
        await events.wait_until(lambda e: "I speak" in e.text())
        await client.notify("session/cancel", {"sessionId": session})
        assert (await turn)["result"]["stopReason"] == "cancelled"


@each_client
@each_agent
async def test_an_error_ends_the_turn_and_the_next_prompt_runs(server: Server, agent: str, version: int) -> None:
    async with connected(server.url, agent, version=version) as client, client.stream() as events:
        session = await client.new_session()
        assert (await run(client, events, session, "fail"))["error"]["message"] == "it broke"
        assert "result" in await run(client, events, session, "hello")


@each_agent
@pytest.mark.parametrize("answerer", [1, 2])
async def test_two_clients_of_different_versions_share_a_session_and_either_may_answer(
    server: Server, agent: str, answerer: int
) -> None:
    async with (
        connected(server.url, agent, version=1) as old,
        connected(server.url, agent, version=2) as new,
        old.stream() as old_events,
        new.stream() as new_events,
    ):
        session = await old.new_session()
        await new.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        turn = asyncio.create_task(run(old, old_events, session, "ask"))
        asked = [await events.wait_for(is_permission) for events in (old_events, new_events)]
        chosen = (old, asked[0]) if answerer == 1 else (new, asked[1])
        await chosen[0].answer(chosen[1], option_of_kind(chosen[1], "reject_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await new_events.wait_until(is_idle)
        for events in (old_events, new_events):
            assert events.text().count("I speak") == 1
            assert '"reject_once"' in events.text()
        assert [update["content"][0]["text"] for update in new_events.updates("user_message")] == ["ask"]
        asker = old_events if answerer == 2 else new_events
        await asker.wait_for(lambda message: message.get("method") == "$/cancel_request")
        reply = asyncio.create_task(run(new, new_events, session, "hello"))
        await old_events.wait_for(lambda message: "hello" in str(message) and "user_message_chunk" in str(message))
        assert "result" in await reply


@each_agent
async def test_a_prompt_that_waits_in_the_queue_is_taken_back_by_a_cancel(server: Server, agent: str) -> None:
    async with connected(server.url, agent, version=2) as client, client.stream() as events:
        session = await client.new_session()
        assert (await client.prompt(session, "wait"))["result"]["messageId"]
        queued = asyncio.create_task(client.prompt(session, "never"))
        await events.wait_for(lambda message: message.get("method") == "_sandboxagent/session/turn_queued")
        await client.notify("session/cancel", {"sessionId": session})
        assert (await queued)["error"]["code"] == -32800
        await events.wait_until(is_idle)
        assert "never" not in str(events.updates())


@each_client
@each_agent
async def test_a_replay_is_in_the_words_of_whoever_asks(server: Server, agent: str, version: int) -> None:
    async with connected(server.url, agent, version=version) as first, first.stream() as events:
        session = await first.new_session()
        await run(first, events, session, "hello")
    for reader in (1, 2):
        async with connected(server.url, agent, version=reader) as again, again.stream() as replayed:
            method = "session/load" if reader == 1 else "session/resume"
            params: dict[str, Any] = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
            await again.call(method, params if reader == 1 else {**params, "replayFrom": {"type": "start"}})
            await replayed.wait_until(lambda e: "I speak" in e.text())
            assert "hello" in str(replayed.updates("user_message_chunk") + replayed.updates("user_message"))
            assert states(replayed) == ([] if reader == 1 else ["idle"])
            if reader == 2:
                assert all("messageId" in update for update in replayed.updates("agent_message_chunk"))


@each_client
@each_agent
async def test_a_killed_agent_answers_its_turn_and_goes_on_with_the_next(
    server: Server, agent: str, version: int
) -> None:
    async with connected(server.url, agent, version=version) as client, client.stream() as events:
        session = await client.new_session()
        turn = asyncio.create_task(run(client, events, session, "wait"))
        await events.wait_until(lambda e: "I speak" in e.text())
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            status = (await http.get(f"/v1/agents/{agent}")).json()["serverStatus"]
        pid = next(process["pid"] for process in status["processes"] if process["session"] == session)
        os.kill(pid, signal.SIGKILL)
        assert "exit" in str((await turn)["error"]) or "kill" in str((await turn)["error"])
        assert "result" in await run(client, events, session, "hello")
        assert events.text().count("I speak") == 2


def _turn(session: str, text: str, turn_id: str) -> dict[str, Any]:
    prompt = [{"type": "text", "text": text}]
    return {"sessionId": session, "prompt": prompt, "_meta": {"sandboxagent.dev": {"turnId": turn_id}}}


@each_agent
@pytest.mark.parametrize("first", [1, 2])
async def test_a_turn_that_a_client_of_the_other_version_sends_again_is_answered_in_its_own_way(
    server: Server, agent: str, first: int
) -> None:
    async with (
        connected(server.url, agent, version=1) as old,
        connected(server.url, agent, version=2) as new,
        old.stream() as old_events,
        new.stream() as new_events,
    ):
        session = await old.new_session()
        await new.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        sender, again, seen = (old, new, old_events) if first == 1 else (new, old, new_events)
        sent = asyncio.create_task(sender.call("session/prompt", _turn(session, "wait", "t1")))
        await seen.wait_until(lambda e: "I speak" in e.text())
        sent_again = asyncio.create_task(again.call("session/prompt", _turn(session, "wait", "t1")))
        begun = await (sent if first == 2 else sent_again)
        assert set(begun) == {"messageId"}
        await old.notify("session/cancel", {"sessionId": session})
        over = await (sent if first == 1 else sent_again)
        assert over["stopReason"] == "cancelled"
        await new_events.wait_until(is_idle)
        shown = {update["messageId"] for update in new_events.updates("user_message")}
        assert begun["messageId"] in shown
        assert await new.call("session/prompt", _turn(session, "wait", "t1")) == begun
        assert (await old.call("session/prompt", _turn(session, "wait", "t1")))["stopReason"] == "cancelled"
        assert old_events.text().count("I speak") == 1


@each_agent
@each_client
async def test_a_client_that_speaks_the_other_version_than_it_asked_for_is_answered_and_harms_nobody(
    server: Server, agent: str, version: int
) -> None:
    """What it may mean is done; what it cannot mean is refused. Its session goes on as if nothing had been."""
    async with connected(server.url, agent, version=version) as client, client.stream() as events:
        session = await client.new_session()
        await run(client, events, session, "hello")
        at = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
        foreign = [
            ("session/load", at),
            ("session/resume", {**at, "replayFrom": {"type": "start"}}),
            ("session/resume", {**at, "replayFrom": "nonsense"}),
            ("authenticate", {"methodId": "none"}),
            ("auth/login", {"methodId": "none"}),
            ("session/set_mode", {"sessionId": session, "modeId": "none"}),
            ("session/set_config_option", {"sessionId": session, "configId": 7, "type": ["id"], "value": {}}),
        ]
        async with asyncio.timeout(30):
            for method, params in foreign:
                answer = await client.request(method, params)
                assert ("result" in answer) is not ("error" in answer), (method, answer)
        assert "result" in await run(client, events, session, "hello again")
