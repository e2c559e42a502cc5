"""Clients that ask for it are told with each message what the earlier API would have said of it; others are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.rpc import Events, Message, RpcClient, connected, is_permission, option_of_kind
from support.server import Server, running_server

META = "sandboxagent.dev"
WANTS = {"_meta": {META: {"legacyEvents": True}}}


@pytest.fixture
async def asking(server: Server) -> AsyncIterator[RpcClient]:
    async with connected(server.url, capabilities=WANTS) as client:
        yield client


def ours(holder: Message) -> dict[str, Any]:
    told: dict[str, Any] = (holder.get("_meta") or {}).get(META, {})
    return told


def updates(events: Events) -> list[Message]:
    return [m["params"] for m in events.messages if m.get("method") == "session/update"]


async def legacy(client: RpcClient, session: str) -> list[dict[str, Any]]:
    page = await client.call(
        "_sandboxagent/session/events", {"sessionId": session, "format": "legacy", "limit": 10_000}
    )
    found: list[dict[str, Any]] = page["events"]
    return found


async def test_every_message_of_a_turn_says_which_event_item_and_turn_it_is(asking: RpcClient) -> None:
    async with asking.stream() as events:
        made = await asking.call("session/new", {"cwd": "/tmp", "mcpServers": []})
        session = made["sessionId"]
        answer = await asking.prompt(session, "one two three")
        await events.wait_until(lambda e: e.text() == "one two three")
        history = await legacy(asking, session)
        by_id = {event["event_id"]: event for event in history}
        assert by_id[ours(made)["legacyEvent"]["eventId"]]["type"] == "session.started"
        chunks = [p for p in updates(events) if p["update"]["sessionUpdate"] == "agent_message_chunk"]
        assert [ours(p["update"])["phase"] for p in chunks] == ["started", "delta", "delta"]
        [item] = {ours(p["update"])["itemId"] for p in chunks}
        first = by_id[ours(chunks[0])["legacyEvent"]["eventId"]]
        assert (first["type"], first["data"]["item"]["item_id"]) == ("item.started", item)
        assert (ours(chunks[0]["update"])["kind"], ours(chunks[0]["update"])["role"]) == ("message", "assistant")
        for params in chunks[1:]:
            event = by_id[ours(params)["legacyEvent"]["eventId"]]
            assert (event["type"], event["data"]["item_id"]) == ("item.delta", item)
            assert event["sequence"] == ours(params)["legacyEvent"]["sequence"]
            assert ours(params)["legacyEvent"]["nativeSessionId"] == session
        ended = ours(answer["result"])
        assert by_id[ended["legacyEvent"]["eventId"]]["type"] == "turn.ended"
        [turn] = {event["data"]["turn_id"] for event in history if event["type"].startswith("turn.")}
        assert (ended["phase"], ended["turn"]) == ("ended", {"turnId": turn})
        notices = {m["method"].rpartition("/")[2]: m["params"] for m in events.messages if "turn_" in str(m["method"])}
        assert ours(notices["turn_started"])["turn"] == {"turnId": turn}
        assert ours(notices["turn_started"])["phase"] == "started"


async def test_a_tool_call_is_an_item_that_is_told_whole_when_it_is_complete(asking: RpcClient) -> None:
    async with asking.stream() as events:
        session = await asking.new_session(permissionMode="allow")
        await asking.prompt(session, "tool ls")
        await events.wait_until(lambda e: any(ours(p["update"]).get("phase") == "completed" for p in updates(e)))
        calls = [ours(p["update"]) for p in updates(events) if p["update"]["sessionUpdate"].startswith("tool_call")]
        told = [one for one in calls if one]  # one that only says in_progress was no event
        assert told[0]["phase"] == "started"
        assert {one["itemId"] for one in told} == {told[0]["itemId"]}
        assert (told[-1]["phase"], told[-1]["item"]["status"]) == ("completed", "completed")
        done = [e["data"]["item"] for e in await legacy(asking, session) if e["type"] == "item.completed"]
        assert told[-1]["item"] in done


async def test_a_permission_is_told_with_its_id_and_how_it_was_settled(asking: RpcClient) -> None:
    async with asking.stream() as events:
        session = await asking.new_session()
        turn = asyncio.create_task(asking.prompt(session, "tool ls"))
        request = await events.wait_for(is_permission)
        asked = ours(request["params"])
        assert (asked["permissionId"], asked["status"]) == (str(request["id"]), "requested")
        chosen = option_of_kind(request, "allow_always")
        await asking.answer(request, chosen)
        await turn
        settled = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/settled")
        told = ours(settled["params"])
        assert (told["permissionId"], told["status"]) == (str(request["id"]), "accept_for_session")
        assert told["optionId"] == chosen["outcome"]["optionId"]
        by_id = {event["event_id"]: event["type"] for event in await legacy(asking, session)}
        assert by_id[asked["legacyEvent"]["eventId"]] == "permission.requested"
        assert by_id[told["legacyEvent"]["eventId"]] == "permission.resolved"


async def test_one_who_comes_in_the_middle_is_told_the_same_ids_as_the_history_has(server: Server) -> None:
    async with (
        connected(server.url) as first,
        connected(server.url, capabilities=WANTS) as late,
        first.stream() as seen,
        late.stream() as events,
    ):
        session = await first.new_session()
        turn = asyncio.create_task(first.prompt(session, "slow 1000"))
        await seen.wait_until(lambda e: "tick 3" in e.text())
        await late.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        await events.wait_until(lambda e: "tick" in e.text())
        [item] = {ours(p["update"])["itemId"] for p in updates(events)}
        await late.notify("session/cancel", {"sessionId": session})
        await turn
        history = await legacy(first, session)
        assert item in {event["data"].get("item_id") for event in history if event["type"] == "item.delta"}
        assert not any(META in str(m.get("params", {}).get("_meta")) for m in seen.messages)


async def test_others_are_told_nothing_of_it_and_get_the_agents_bytes(server: Server) -> None:
    async with (
        connected(server.url) as plain,
        connected(server.url, capabilities=WANTS) as asking,
        plain.stream() as seen,
        asking.stream() as told,
    ):
        session = await plain.new_session()
        await asking.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        answer = await plain.prompt(session, "one two three")
        await told.wait_until(lambda e: e.text() == "one two three")
        assert answer["result"] == {"stopReason": "end_turn"}
        await seen.wait_until(lambda e: e.text() == "one two three")
        assert "legacyEvent" not in str(seen.messages)
        assert "legacyEvent" in str(told.messages)
        page = await plain.call("_sandboxagent/session/events", {"sessionId": session})
        assert "legacyEvent" not in str(page), "nor is the history changed"


async def test_a_flood_is_told_whole_in_order_and_before_the_answer(asking: RpcClient) -> None:
    async with asking.stream() as events:
        session = await asking.new_session()
        response = await asking.post(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "session/prompt",
                "params": {"sessionId": session, "prompt": [{"type": "text", "text": "chunks 3000 10"}]},
            }
        )
        last = int(response.headers["X-ACP-Last-Event-Id"])
        await events.wait_until(lambda e: e.ids and e.ids[-1] >= last)
        chunks = [p for p in updates(events) if p["update"]["sessionUpdate"] == "agent_message_chunk"]
        assert [int(p["update"]["content"]["text"].split()[0]) for p in chunks] == list(range(1, 3001))
        sequences = [ours(p)["legacyEvent"]["sequence"] for p in chunks]
        assert sequences == sorted(set(sequences))
        assert events.ids == list(range(1, len(events.ids) + 1))


async def test_an_agent_that_dies_is_told_of_with_the_end_of_the_turn(asking: RpcClient) -> None:
    session = await asking.new_session()
    died = await asking.prompt(session, "crash 5")
    told = ours(died["error"]["data"])
    assert (told["phase"], told["errorType"]) == ("ended", "agent_process_exited")
    assert (await asking.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


def correlation(params: Message) -> tuple[Any, Any]:
    """What an update says of its event and of its item."""
    update = dict(params["update"])
    return ours(params).get("legacyEvent"), ours(update)


async def test_a_replay_says_the_same_of_each_update_as_was_said_live(server: Server) -> None:
    async with connected(server.url, capabilities=WANTS) as live, live.stream() as seen:
        session = await live.new_session(permissionMode="allow")
        for text in ("one two three", "tool ls", "think hard"):
            await live.prompt(session, text)
        history = await legacy(live, session)
        told = [correlation(p) for p in updates(seen) if "legacyEvent" in ours(p)]
        assert len(told) >= 6
    async with connected(server.url, capabilities=WANTS) as late, late.stream() as events:
        answer = await late.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        started = ours(answer)["legacyEvent"]
        assert started["eventId"] == next(e["event_id"] for e in history if e["type"] == "session.started")
        await events.wait_until(lambda e: len(updates(e)) >= len(told))
        replayed = updates(events)
        prompts = [p for p in replayed if p["update"]["sessionUpdate"] == "user_message_chunk"]
        assert [correlation(p) for p in replayed if p not in prompts and "legacyEvent" in ours(p)] == told
        said = [
            e["data"]["item"] for e in history if e["type"] == "item.completed" and e["data"]["item"]["role"] == "user"
        ]
        assert [ours(p["update"])["item"] for p in prompts] == said
        assert {ours(p)["replayed"] for p in prompts} == {True}


async def test_what_comes_before_the_answer_to_a_load_is_told_before_it(server: Server) -> None:
    async with connected(server.url) as plain:
        session = await plain.new_session()
        await plain.prompt(session, "chunks 600 5")
    async with connected(server.url, capabilities=WANTS) as late, late.stream() as events:
        params = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
        response = await late.post({"jsonrpc": "2.0", "id": 7, "method": "session/load", "params": params})
        last = int(response.headers["X-ACP-Last-Event-Id"])
        await events.wait_until(lambda e: bool(e.ids) and e.ids[-1] >= last)
        chunks = [p for p in updates(events) if p["update"]["sessionUpdate"] == "agent_message_chunk"]
        assert len(chunks) == 600
        sequences = [ours(p)["legacyEvent"]["sequence"] for p in chunks]
        assert sequences == sorted(set(sequences))


async def test_the_history_says_it_of_every_envelope_to_those_who_ask_and_to_nobody_else(asking: RpcClient) -> None:
    session = await asking.new_session(permissionMode="allow")
    await asking.prompt(session, "tool ls")
    await asking.prompt(session, "one two three")
    events = await legacy(asking, session)
    page = await asking.call("_sandboxagent/session/events", {"sessionId": session})
    by_entry: dict[int, list[str]] = {}
    for event in events:
        by_entry.setdefault(event["sequence"] // 1000, []).append(event["event_id"])
    for entry in page["events"]:
        envelope = entry["envelope"]
        holder = envelope.get("params", envelope.get("result"))
        told = ours(holder).get("legacyEvent", {}).get("eventId")
        assert told == by_entry.get(entry["sequence"], [None])[0]
    prompts = [e["envelope"]["params"] for e in page["events"] if e["envelope"].get("method") == "session/prompt"]
    turns = [event["data"]["turn_id"] for event in events if event["type"] == "turn.started"]
    assert [ours(params)["turn"]["turnId"] for params in prompts] == turns
    later = await asking.call("_sandboxagent/session/events", {"sessionId": session, "after": 5, "limit": 3})
    assert later["events"] == page["events"][5:8], "a page in the middle says the same"


async def test_a_flood_beyond_the_bound_loses_its_correlation_and_nothing_else(tmp_path: Path) -> None:
    """The line of messages that wait is bounded: what does not fit is told at once, as it is."""
    async with (
        running_server(tmp_path, env={"SANDBOX_AGENT_CORRELATION_BYTES": "20000"}) as small,
        connected(small.url, capabilities=WANTS) as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        answer = await client.prompt(session, "chunks 3000 40")
        assert answer["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: "3000 " in e.text())
        chunks = [p for p in updates(events) if p["update"]["sessionUpdate"] == "agent_message_chunk"]
        assert [int(p["update"]["content"]["text"].split()[0]) for p in chunks] == list(range(1, 3001))
        assert any("legacyEvent" not in ours(p) for p in chunks), "it must have been too much at least once"
        by_id = {event["event_id"] for event in await legacy(client, session)}
        assert {ours(p)["legacyEvent"]["eventId"] for p in chunks if "legacyEvent" in ours(p)} <= by_id
        answer = await client.prompt(session, "afterwards")
        assert ours(answer["result"])["legacyEvent"]["type"] == "turn.ended"
