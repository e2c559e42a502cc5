"""What one shared process per agent must survive, line by line. Each was seen in a real agent.

| what agents do | where it is tested |
|---|---|
| run two requests with one id and answer both with it | test_shared_process: two_clients_with_the_same_id…
| change ids above 2^53 | here: ids_of_any_size…
| number requests from 0 or with UUIDs | test_shared_process: agent_request_ids_are_ours…
| withdraw a permission with `$/cancel_request` | test_questions: …withdraws_is_withdrawn_from_the_client
| answer a bad line with id null or none | here: answers_without_a_usable_id…
| send updates before the answer to session/new | test_shared_process: updates_before_the_answer…
| send updates outside a prompt | here: an_update_after_the_answer…
| send notifications of no session | here: a_notification_of_no_session…
| name sessions alike at several agents | test_shared_process: …never_mixed
| replay everything on session/load of a live session | test_durability: a_load_replays_only_to_the_one_who_asked
| refuse session/load of a live session | test_durability: live_sessions_can_be_loaded_whether_or_not…
| replay only after the answer to session/load | test_agent_death: either_load_or_resume… with --late-replay
| claim session/load and fail | test_agent_death: …fails_to_load_can_be_read…
| have option ids of their own | core/test_permission_policy: a_reply_maps_by_kind…
| name only the toolCallId in a permission | here: rules_hold_for_a_permission…
| wait for open permissions on a cancel | test_questions: cancel_answers_open_permissions…
| run without asking a client that declares nothing | here: the_agent_is_told_of_capabilities…
| treat a second prompt in many ways | test_questions: prompts_of_one_session_run_one_after_the_other…
| answer an LLM's error, end the turn, or say nothing | here: an_error_ends_a_turn…, an_agent_that_says_nothing…
| fix the version by the first initialize | test_negotiation
| ignore the end of stdin, and TERM | process/test_agent_process; test_shutdown
| chatter on stderr | here: a_flood_on_stderr…
| write lines that are no messages | test_streams: lines_that_are_no_messages…
| list models twice, or ones that cannot be set | test_settings_of_a_session
| want a login | test_authentication
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from support.rpc import RpcClient, connected, is_permission, option_of_kind
from support.server import mock_agents, running_server


@pytest.mark.parametrize("key", [2**53 + 1, -(2**63), "x" * 1000, 0])
async def test_ids_of_any_size_come_back_and_the_agent_sees_small_ones(client: RpcClient, key: int | str) -> None:
    session = await client.new_session()
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
    answer = await client.request("session/prompt", params, id=key)
    assert (answer["id"], answer["result"]["stopReason"]) == (key, "end_turn")


async def test_answers_without_a_usable_id_disturb_nobody(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        assert (await client.prompt(session, "null-answer"))["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: "after null-answer" in e.text())
    assert (await client.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


async def test_an_update_after_the_answer_to_its_prompt_is_delivered(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        assert (await client.prompt(session, "late-update"))["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: e.text().endswith("late"))


async def test_a_notification_of_no_session_reaches_every_client_of_the_agent_and_no_other(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(other="")) as server,
        connected(server.url) as one,
        connected(server.url) as two,
        connected(server.url, "other") as stranger,
        one.stream() as first,
        two.stream() as second,
        stranger.stream() as third,
    ):
        await one.prompt(await one.new_session(), "no-session")
        for events in (first, second):
            told = await events.wait_for(lambda m: m.get("method") == "_auth/status_update")
            assert told["params"] == {"status": "signed-out"}
        await stranger.prompt(await stranger.new_session(), "hello")
        await third.wait_until(lambda e: e.text() == "hello")
        assert "_auth/status_update" not in {m.get("method") for m in third.messages}


@pytest.mark.parametrize(("word", "is_allowed"), [("edit", True), ("tool", False)])
async def test_rules_hold_for_a_permission_that_names_only_the_call(
    tmp_path: Path, word: str, *, is_allowed: bool
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(bare="--bare-permissions")) as server,
        connected(server.url, "bare") as client,
        client.stream() as events,
    ):
        session = await client.new_session(permissionMode={"edit": "allow", "execute": "reject"})
        assert (await client.prompt(session, word))["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: e.text())
        assert ("rejected" not in events.text()) == is_allowed
        assert not any(map(is_permission, events.messages))


async def test_the_agent_is_told_of_capabilities_even_when_no_client_has_any(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        await client.prompt(session, "client")
        await events.wait_until(lambda e: e.text().endswith("}"))
        told = msgspec.json.decode(events.text())
    assert told["clientInfo"]["name"] == "sandbox-agent"
    assert told["clientCapabilities"]["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert told["clientCapabilities"]["terminal"] is True


async def test_an_error_ends_a_turn_and_the_session_goes_on(client: RpcClient) -> None:
    session = await client.new_session()
    assert (await client.prompt(session, "fail -32050"))["error"]["code"] == -32050
    assert (await client.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


async def test_an_agent_that_says_nothing_can_be_cancelled(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, "thought well; hang"))
        await events.wait_until(lambda e: e.updates("agent_thought_chunk"))
        await client.notify("session/cancel", {"sessionId": session})
        assert (await turn)["result"]["stopReason"] == "cancelled"


async def test_a_flood_on_stderr_neither_blocks_nor_reaches_the_protocol(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, "stderr 50000; tool"))
        request = await events.wait_for(is_permission)
        await client.answer(request, option_of_kind(request, "allow_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        assert not [m for m in events.messages if m.get("method") == "_sandboxagent/agent/unparsed"]
