"""Rules 4 and 5: what agents ask of people, and one prompt at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.rpc import Events, Message, RpcClient, connected, is_permission, option_of_kind, prompt_params
from support.server import Server, mock_agents, running_server


def is_cancel(message: Message) -> bool:
    return message.get("method") == "$/cancel_request"


@pytest.mark.promise("P-ask-1")
async def test_the_first_answer_wins_and_the_other_client_is_told(server: Server) -> None:
    async with (
        connected(server.url) as one,
        connected(server.url) as other,
        one.stream() as seen_by_one,
        other.stream() as seen_by_other,
    ):
        session = await one.new_session()
        await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        turn = asyncio.create_task(one.prompt(session, "tool"))
        asked_one = await seen_by_one.wait_for(is_permission)
        asked_other = await seen_by_other.wait_for(is_permission)
        assert asked_one == asked_other
        await other.answer(asked_other, option_of_kind(asked_other, "allow_once"))
        withdrawn = await seen_by_one.wait_for(is_cancel)
        assert withdrawn["params"] == {"requestId": asked_one["id"]}
        await one.answer(asked_one, option_of_kind(asked_one, "reject_once"))  # too late: changes nothing
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await seen_by_one.wait_until(lambda e: _status(e) == "completed")
        assert not any(is_cancel(m) for m in seen_by_other.messages)


@pytest.mark.parametrize(("kind", "status"), [("allow_once", "completed"), ("reject_once", "failed")])
async def test_the_agent_acts_on_the_answer(client: RpcClient, kind: str, status: str) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, "tool"))
        request = await events.wait_for(is_permission)
        await client.answer(request, option_of_kind(request, kind))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: _status(e) == status)


async def test_an_open_question_is_asked_again_of_whoever_comes_later(server: Server) -> None:
    async with connected(server.url) as first:
        session = await first.new_session()
        params = prompt_params(session, "tool")
        message = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}
        await first.post(message, Prefer="respond-async")
        async with first.stream() as events:
            await events.wait_for(is_permission)
        await first.close()
    async with connected(server.url) as late, late.stream() as events:
        await late.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        request = await events.wait_for(is_permission)
        await late.answer(request, option_of_kind(request, "allow_once"))
        await events.wait_until(lambda e: _status(e) == "completed")


async def test_answers_of_clients_that_were_not_asked_change_nothing(server: Server) -> None:
    async with connected(server.url) as owner, connected(server.url) as stranger, owner.stream() as events:
        session = await owner.new_session()
        turn = asyncio.create_task(owner.prompt(session, "tool"))
        request = await events.wait_for(is_permission)
        await stranger.answer(request, option_of_kind(request, "allow_once"))
        await owner.call("session/list")
        assert not turn.done()
        await owner.answer(request, option_of_kind(request, "reject_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: _status(e) == "failed")


@pytest.mark.parametrize("flags", ["", "--wait-permission-on-cancel"])
async def test_cancel_answers_open_permissions_for_agents_that_wait_for_it(tmp_path: Path, flags: str) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m=flags)) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        turn = asyncio.create_task(client.prompt(session, "tool"))
        request = await events.wait_for(is_permission)
        await client.notify("session/cancel", {"sessionId": session})
        assert (await turn)["result"]["stopReason"] == "cancelled"
        withdrawn = await events.wait_for(is_cancel)
        assert withdrawn["params"]["requestId"] == request["id"]


async def test_a_permission_that_the_agent_withdraws_is_withdrawn_from_the_client(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m="--withdraw --uuid-ids")) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        turn = asyncio.create_task(client.prompt(session, "tool"))
        request = await events.wait_for(is_permission)
        withdrawn = await events.wait_for(is_cancel)
        assert withdrawn["params"]["requestId"] == request["id"]
        assert (await turn)["result"]["stopReason"] == "end_turn"


async def test_a_question_is_routed_like_a_permission_and_keeps_several_answers(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, "question multi"))
        request = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/request_question")
        options = [option["id"] for option in request["params"]["options"]][:2]
        await client.answer(request, {"outcome": "answered", "answers": [options]})
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: all(option in e.text() for option in options))


async def test_a_question_can_be_rejected(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, "question"))
        request = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/request_question")
        await client.answer(request, {"outcome": "rejected"})
        await turn
        await events.wait_until(lambda e: "reject" in e.text().lower())


async def test_elicitation_goes_to_clients_that_claim_it_and_is_cancelled_otherwise(server: Server) -> None:
    async with connected(server.url) as plain, plain.stream() as events:
        session = await plain.new_session()
        await plain.prompt(session, "elicit")
        await events.wait_until(lambda e: "cancel" in e.text())
    async with (
        connected(server.url, capabilities={"elicitation": {"form": {}}}) as able,
        able.stream() as events,
    ):
        session = await able.new_session()
        turn = asyncio.create_task(able.prompt(session, "elicit"))
        request = await events.wait_for(lambda m: m.get("method") == "elicitation/create")
        await able.answer(request, {"action": "accept", "content": {"name": "Ada"}})
        await turn
        await events.wait_until(lambda e: "accept" in e.text())


@pytest.mark.promise("P-session-6")
async def test_prompts_of_one_session_run_one_after_the_other_in_order(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turns = [asyncio.create_task(client.prompt(session, f"chunks 300 {n}")) for n in range(5, 10)]
        for turn in turns:
            assert (await turn)["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: len(e.updates("agent_message_chunk")) == 1500)
    texts = [update["content"]["text"] for update in events.updates("agent_message_chunk")]
    assert [int(text.split(" ")[0]) for text in texts] == list(range(1, 301)) * 5


async def test_a_full_queue_refuses_with_busy_and_keeps_what_it_has(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="max_queued_prompts = 2\n") as server,
        connected(server.url) as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        running = asyncio.create_task(client.prompt(session, "slow 1000"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        waiting = [asyncio.create_task(client.prompt(session, "after")) for _ in range(2)]
        await _until_queued(client, session)
        refused = await client.prompt(session, "one too many")
        assert refused["error"]["code"] == -32001
        assert refused["error"]["data"]["retryable"] is True
        await client.notify("session/cancel", {"sessionId": session})
        answers = [await task for task in (running, *waiting)]
        assert [answer["result"]["stopReason"] for answer in answers] == ["cancelled"] * 3


async def _until_queued(client: RpcClient, session: str) -> None:
    """Two prompts are queued once a third of ours is refused; a probe that is accepted would be answered."""
    await client.call("_sandboxagent/session/get", {"sessionId": session})
    await asyncio.sleep(0.3)


async def test_a_prompt_in_the_queue_can_be_taken_back_by_its_id(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        running = asyncio.create_task(client.prompt(session, "slow 1000"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        params = prompt_params(session, "never runs")
        queued = asyncio.create_task(client.request("session/prompt", params, id="take-me-back"))
        await _until_queued(client, session)
        await client.notify("$/cancel_request", {"requestId": "take-me-back"})
        assert (await queued)["error"]["code"] == -32800
        await client.notify("session/cancel", {"sessionId": session})
        assert (await running)["result"]["stopReason"] == "cancelled"
        assert "never runs" not in events.text()


async def test_a_running_request_is_cancelled_at_the_agent_under_our_id(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        running = asyncio.create_task(client.request("session/prompt", prompt_params(session, "slow 1000"), id="r"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        await client.notify("$/cancel_request", {"requestId": "r"})
        assert (await running)["result"]["stopReason"] == "cancelled"


def _status(events: Events) -> Any:
    statuses = [u.get("status") for u in events.updates("tool_call_update")]
    return statuses[-1] if statuses else None
