"""The feed: every change, in order, to whoever follows it, exactly once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from sandbox_agent.errors import InvalidParams
from sandbox_agent.hub.feed import Change, Feed
from support.feed import following
from support.rpc import RpcClient, connected, is_permission
from support.server import Server, mock_agents, running_server


@pytest.mark.promise("P-session-8")
async def test_a_turn_with_a_permission_is_told_from_its_begin_to_its_end(server: Server) -> None:
    async with following(server.url) as feed, connected(server.url) as client, client.stream() as events:
        session = await client.new_session()
        running = asyncio.create_task(client.prompt(session, "tool ls"))
        asked = await events.wait_for(is_permission)
        question = await feed.until("question.asked", session)
        assert question["requestId"] == asked["id"]
        option = asked["params"]["options"][0]["optionId"]
        await client.answer(asked, {"outcome": {"outcome": "selected", "optionId": option}})
        await running
        await feed.until("turn.ended", session)
        kinds = [kind for kind in feed.types(session) if kind != "session.updated"]
        assert kinds == [
            "session.created",
            "turn.started",
            "question.asked",
            "question.settled",
            "turn.ended",
        ]
        settled = await feed.until("question.settled", session)
        assert (settled["by"], settled["connectionId"]) == ("client", client.id)
        created = await feed.until("session.created", session)
        listed = (await client.http.get("/v1/sessions")).json()["sessions"][0]
        assert created["session"].keys() == listed.keys()
        assert not any("node" in event for _, event in feed.events)  # there is only one


@pytest.mark.promise("P-stream-7")
async def test_who_comes_back_misses_nothing_and_gets_nothing_twice(server: Server) -> None:
    async with connected(server.url) as client:
        async with following(server.url) as before:
            session = await client.new_session()
            await client.prompt(session, "one")
            await before.until("turn.ended", session)
        position = before.events[1][0]
        await client.prompt(session, "two")
        async with following(server.url, after=position) as after:
            async with asyncio.timeout(30):
                while after.types().count("turn.ended") < 2:
                    await asyncio.sleep(0.01)
            seen = [at for at, _ in after.events]
            assert seen == sorted(set(seen), key=lambda at: int(at.rpartition("-")[2]))
            assert [at for at, _ in before.events if at in seen] == [at for at, _ in before.events[2:]]


async def test_a_position_of_another_run_of_the_server_is_answered_with_a_reset(server: Server) -> None:
    async with following(server.url, after="0badc0de-7") as feed:
        assert (await feed.until("reset"))["type"] == "reset"
    async with httpx.AsyncClient(base_url=server.url) as http:
        refused = await http.get("/v1/events", params={"after": "nonsense"})
        assert refused.status_code == 400
        assert "nonsense" in refused.json()["detail"]


async def test_agents_are_told_when_they_start_and_when_they_die(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(other="")) as server,
        following(server.url) as feed,
        connected(server.url, "other") as client,
    ):
        session = await client.new_session()
        await client.prompt(session, "crash")
        async with asyncio.timeout(30):
            while True:
                told = [e["serverStatus"]["status"] for _, e in feed.events if e["type"] == "agent.changed"]
                if "running" in told and "error" in told:
                    break
                await asyncio.sleep(0.01)


async def test_a_client_that_speaks_acp_only_follows_on_its_stream(client: RpcClient) -> None:
    async with client.stream() as events:
        followed = await client.call("_sandboxagent/feed/follow")
        session = await client.new_session()
        changed = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/feed/changed")
        assert changed["params"]["type"] == "session.created"
        assert changed["params"]["sessionId"] == session
        assert changed["params"]["id"] != followed["after"]
        await client.call("_sandboxagent/feed/unfollow")
        quiet = len(events.messages)
        await client.prompt(session, "unseen")
        await events.wait_until(lambda e: "unseen" in e.text())
        assert not any(m.get("method") == "_sandboxagent/feed/changed" for m in events.messages[quiet:])


async def test_following_again_and_again_holds_nothing_more_and_tells_each_change_once(client: RpcClient) -> None:
    async with client.stream() as events:
        for _ in range(50):
            await client.call("_sandboxagent/feed/follow")
        session = await client.new_session()
        await client.prompt(session, "once")
        ended = lambda m: m.get("method") == "_sandboxagent/feed/changed" and m["params"]["type"] == "turn.ended"  # noqa: E731
        await events.wait_for(ended)
        positions = [m["params"]["id"] for m in events.messages if m.get("method") == "_sandboxagent/feed/changed"]
        assert len(positions) == len(set(positions))


def _tell(feed: Feed, number: int) -> None:
    feed.tell("x", lambda: {"number": number})


def test_what_is_kept_is_bounded_and_one_who_is_too_late_is_told_to_list_again() -> None:
    feed = Feed(kept_bytes=200)
    seen: list[Change] = []
    leave = feed.follow(None, seen.append)
    for number in range(100):
        _tell(feed, number)
    assert len(seen) == 100
    late: list[Change] = []
    feed.follow(seen[0].position, late.append)
    assert [change.kind for change in late] == ["reset"]
    caught_up: list[Change] = []
    feed.follow(seen[-3].position, caught_up.append)
    assert caught_up == seen[-2:]
    leave()
    _tell(feed, 100)
    assert len(seen) == 100
    assert len(caught_up) == 3


def test_nothing_is_kept_before_somebody_follows() -> None:
    feed = Feed(kept_bytes=1000)
    feed.tell("x", lambda: pytest.fail("nobody can read it"))
    with pytest.raises(InvalidParams):
        feed.follow("-", lambda change: None)


async def test_a_reader_that_resumes_too_far_back_is_told_so_and_gets_nothing_twice() -> None:
    feed = Feed(kept_bytes=1 << 20)
    leave = feed.follow(None, lambda change: None)
    start = feed.position
    for number in range(5):
        feed.tell("change", lambda number=number: {"number": number})  # type: ignore[misc]
    reader = feed.read(start, limit=2)
    assert [(change.kind, change.position) for change in await reader.take(wait=1)] == [("reset", feed.position)]
    feed.tell("change", lambda: {"number": 5})
    assert [change.position for change in await reader.take(wait=1)] == [feed.position]
    reader.close()
    leave()
