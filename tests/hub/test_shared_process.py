"""Rules 1 to 3: one process for all clients, ids that never mix, sessions that outlive connections."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.rpc import RpcClient, connected, is_permission, option_of_kind, prompt_params
from support.server import Server, mock_agents, running_server


@pytest.mark.parametrize("key", [0, 1, "same"])
async def test_two_clients_with_the_same_id_at_the_same_time_get_their_own_answers(server: Server, key: Any) -> None:
    async with connected(server.url) as one, connected(server.url) as other:
        sessions = await one.new_session(), await other.new_session()
        for _ in range(10):
            prompts = [
                client.post(
                    {
                        "jsonrpc": "2.0",
                        "id": key,
                        "method": "session/prompt",
                        "params": prompt_params(session, words),
                    }
                )
                for client, session, words in ((one, sessions[0], "usage"), (other, sessions[1], "fail -32099"))
            ]
            first, second = await asyncio.gather(*prompts)
            assert first.json()["id"] == second.json()["id"] == key
            assert first.json()["result"]["stopReason"] == "end_turn"
            assert second.json()["error"]["code"] == -32099


async def test_one_client_may_use_an_id_twice_at_once(client: RpcClient) -> None:
    one, other = await client.new_session(), await client.new_session()
    answers = await asyncio.gather(
        client.request("session/prompt", prompt_params(one, "hi"), id=0),
        client.request("session/prompt", prompt_params(other, "fail -32099"), id=0),
    )
    assert "result" in answers[0]
    assert answers[1]["error"]["code"] == -32099


async def test_agent_request_ids_are_ours_whatever_the_agent_uses(tmp_path: Path) -> None:
    config = mock_agents(ints="", uuids="--uuid-ids")
    async with running_server(tmp_path, "--no-token", config=config) as server:
        seen: list[Any] = []
        for agent in ("ints", "uuids"):
            async with connected(server.url, agent) as client, client.stream() as events:
                session = await client.new_session()
                turn = asyncio.create_task(client.prompt(session, "tool"))
                request = await events.wait_for(is_permission)
                seen.append(request["id"])
                await client.answer(request, option_of_kind(request, "allow_once"))
                assert (await turn)["result"]["stopReason"] == "end_turn"
        assert all(isinstance(key, int) for key in seen)
        assert len(set(seen)) == 2


async def test_updates_before_the_answer_to_session_new_are_delivered_after_it(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(early="--early-updates")) as server,
        connected(server.url, "early") as client,
        client.stream() as events,
    ):
        response = await client.post(
            {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}},
        )
        session = response.json()["result"]["sessionId"]
        before = int(response.headers["X-ACP-Last-Event-Id"])
        update = await events.wait_for(lambda m: m.get("method") == "session/update")
        assert update["params"]["sessionId"] == session
        assert events.ids[events.messages.index(update)] > before


async def test_sessions_with_one_id_at_two_agents_are_never_mixed(tmp_path: Path) -> None:
    config = mock_agents(a="--counter-sessions", b="--counter-sessions")
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "a") as one,
        connected(server.url, "b") as other,
        one.stream() as seen_by_one,
        other.stream() as seen_by_other,
    ):
        first, second = await one.new_session(), await other.new_session()
        assert first == second
        await one.prompt(first, "for a")
        await other.prompt(second, "for b")
        await seen_by_one.wait_until(lambda e: e.text() == "for a")
        await seen_by_other.wait_until(lambda e: e.text() == "for b")
        listed = (await one.call("session/list"))["sessions"]
        assert sorted(s["_meta"]["sandboxagent.dev"]["agent"] for s in listed) == ["a", "b"]


async def test_a_session_may_name_another_agent_than_its_connection(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(other="")) as server,
        connected(server.url, "mock") as client,
        client.stream() as events,
    ):
        session = await client.new_session(agent="other")
        await client.prompt(session, "over there")
        await events.wait_until(lambda e: e.text() == "over there")
        listed = (await client.call("session/list"))["sessions"]
        assert listed[0]["_meta"]["sandboxagent.dev"]["agent"] == "other"


@pytest.mark.promise("P-session-1")
async def test_delete_in_a_running_turn_returns_at_once_and_the_turn_goes_on(server: Server) -> None:
    async with connected(server.url) as first:
        session, endless = await first.new_session(), await first.new_session()
        for number, (where, words) in enumerate([(session, "slow 30"), (endless, "hang")], 1):
            params = prompt_params(where, words)
            message = {"jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": params}
            assert (await first.post(message, Prefer="respond-async")).status_code == 202
        async with asyncio.timeout(10):
            await first.close()
            await first.close()
    async with connected(server.url) as second, second.stream() as events:
        await second.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        await events.wait_until(lambda e: "tick 30" in e.text())
        ticks = events.text().split("tick ")[1:]
        assert [tick.strip() for tick in ticks] == [str(n) for n in range(1, 31)]
        assert events.updates("user_message_chunk")[0]["content"]["text"] == "slow 30"


async def test_a_connection_that_detaches_hears_no_more_of_the_session(server: Server) -> None:
    async with (
        connected(server.url) as one,
        connected(server.url) as other,
        one.stream() as seen_by_one,
        other.stream() as seen_by_other,
    ):
        session = await one.new_session()
        await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        await one.prompt(session, "both")
        await seen_by_other.wait_until(lambda e: e.text() == "both")
        await other.call("_sandboxagent/session/detach", {"sessionId": session})
        await one.prompt(session, " one")
        await seen_by_one.wait_until(lambda e: e.text() == "both one")
        await other.call("session/list")
        assert seen_by_other.text() == "both"


async def test_unknown_methods_with_an_underscore_pass_to_the_agent(client: RpcClient) -> None:
    answer = await client.request("_vendor/thing", {"deep": [1, {"x": None}]})
    assert answer["error"]["code"] == -32601
    assert "_vendor/thing" in answer["error"]["message"]


async def test_an_unknown_session_is_an_error_that_says_so(client: RpcClient) -> None:
    for method in ("session/prompt", "session/load", "session/resume", "session/fork", "session/close"):
        params = {"sessionId": "nobody", "cwd": "/tmp", "mcpServers": [], "prompt": []}
        answer = await client.request(method, params)
        assert "nobody" in str(answer["error"]), (method, answer)


async def test_a_missing_session_id_is_an_error_that_names_the_field(client: RpcClient) -> None:
    answer = await client.request("session/prompt", {"prompt": []})
    assert answer["error"]["code"] == -32602
    assert "sessionId" in answer["error"]["message"]
