"""One feed of all nodes: changes at any of them are told at each, and what may be missing is said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.cluster import cluster
from support.feed import Followed, following
from support.link_proxy import link_proxy
from support.postgres import PostgresServer
from support.rpc import Events, RpcClient, is_permission

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly

TURN = ["session.created", "turn.started", "question.asked", "question.settled", "turn.ended"]


def changes(followed: Followed, session: str) -> list[tuple[str, str]]:
    """Of a session: node and type, without those that come as often as they like."""
    found = [event for _, event in followed.events if event.get("sessionId") == session]
    return [(event["node"], event["type"]) for event in found if event["type"] != "session.updated"]


def told(message: dict[str, Any], session: str) -> str | None:
    """The type of a change of a session that is told over ACP."""
    params = message.get("params", {})
    is_change = message.get("method") == "_sandboxagent/feed/changed" and params.get("sessionId") == session
    return params["type"] if is_change else None


def is_reset(node: str) -> Any:
    return lambda event: (event["type"], event.get("node")) == ("reset", node)


async def asking_turn(client: RpcClient, events: Events) -> str:
    """A new session with one turn in which a question is asked and answered."""
    session = await client.new_session()
    running = asyncio.create_task(client.prompt(session, "tool ls"))
    asked = await events.wait_for(lambda m: is_permission(m) and m["params"]["sessionId"] == session)
    option = asked["params"]["options"][0]["optionId"]
    await client.answer(asked, {"outcome": {"outcome": "selected", "optionId": option}})
    assert (await running)["result"]["stopReason"] == "end_turn"
    return session


@pytest.mark.promise("P-cluster-11")
async def test_what_changes_at_a_node_is_told_once_at_each(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        a, b, c = [await nodes.start(name) for name in "abc"]
        one, three = await nodes.client(a), await nodes.client(c)
        seen, seen_by_acp = await nodes.stream(one), await nodes.stream(three)
        async with following(a.url) as at_a, following(b.url) as at_b, following(b.url) as beside:
            await three.call("_sandboxagent/feed/follow")
            sessions = [await asking_turn(one, seen), await asking_turn(three, seen_by_acp)]
            wanted = {session: [(node, kind) for kind in TURN] for session, node in zip(sessions, "ac", strict=True)}
            for session in sessions:
                for followed in (at_a, at_b, beside):
                    await followed.until("turn.ended", session)
                    assert changes(followed, session) == wanted[session]
                await seen_by_acp.wait_for(lambda m, of=session: told(m, of) == "turn.ended")  # type: ignore[misc]
                by_acp = [
                    m["params"] for m in seen_by_acp.messages if told(m, session) not in (None, "session.updated")
                ]
                assert [(params["node"], params["type"]) for params in by_acp] == wanted[session]
            assert "reset" not in at_b.types()


async def test_the_changes_of_one_node_can_be_followed_alone(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        a, b = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(a), await nodes.client(b)
        async with (
            following(b.url) as everything,
            following(b.url, node="a") as of_a,
            following(b.url, node="b") as of_b,
        ):
            first, second = await one.new_session(), await two.new_session()
            await everything.until("session.created", first)
            await everything.until("session.created", second)
            assert "node" not in await of_a.until("session.created", first)
            assert "node" not in await of_b.until("session.created", second)
            assert of_a.types(second) == of_b.types(first) == []


async def test_a_node_that_joins_is_followed_and_one_who_listed_before_is_told(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        b = await nodes.start("b")
        async with following(b.url) as followed:
            c = await nodes.start("c")
            three = await nodes.client(c)
            await followed.find(is_reset("c"))
            session = await three.new_session()
            assert (await followed.until("session.created", session))["node"] == "c"


@pytest.mark.parametrize("is_noticed", [True, False])
async def test_a_node_that_is_killed_and_comes_back_is_followed_again(
    postgres: PostgresServer, tmp_path: Path, *, is_noticed: bool
) -> None:
    """`is_noticed`: whether its lease has ended before it comes back."""
    async with cluster(postgres, tmp_path) as nodes:
        a, b = await nodes.start("a"), await nodes.start("b")
        async with following(b.url) as followed:
            a.kill()
            await a.process.wait()
            if is_noticed:
                await followed.find(is_reset("a"))
            before = len(followed.events)
            a = await nodes.start("a")
            unseen = await (await nodes.client(a)).new_session()  # perhaps before it is followed
            await followed.find(is_reset("a"), after=before)
            two = await nodes.client(b)
            listed = (await two.http.get("/v1/sessions")).json()["sessions"]
            assert unseen in [each["sessionId"] for each in listed]  # which is what a reset is answered with
            session = await (await nodes.client(a)).new_session()
            assert (await followed.until("session.created", session))["node"] == "a"


async def test_a_link_that_breaks_costs_no_change(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes, link_proxy() as between:
        a, b = await nodes.start("a", node_url=between.url), await nodes.start("b")
        between.target = a.port
        one, two = await nodes.client(a), await nodes.client(b)
        async with following(b.url) as followed:
            sessions = [await one.new_session()]
            await followed.until("session.created", sessions[0])
            between.set("refused")
            sessions += [await one.new_session() for _ in range(5)]
            await followed.until("session.created", await two.new_session())  # others are not delayed
            assert followed.types(sessions[-1]) == []
            between.set("open")
            await followed.until("session.created", sessions[-1])
            created = [e["sessionId"] for _, e in followed.events if (e["type"], e["node"]) == ("session.created", "a")]
            assert created == sessions
            assert "reset" not in followed.types()


async def test_a_link_that_is_cut_for_too_long_is_told(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes, link_proxy() as between:
        a, b = await nodes.start("a", node_url=between.url, feed_memory_bytes=1000), await nodes.start("b")
        between.target = a.port
        one = await nodes.client(a)
        async with following(b.url) as followed:
            await followed.until("session.created", await one.new_session())
            between.set("refused")
            missed, *_ = [await one.new_session() for _ in range(5)]
            between.set("open")
            await followed.find(is_reset("a"))
            later = await one.new_session()
            await followed.until("session.created", later)
            assert followed.types(missed) == []


async def test_a_node_that_does_not_answer_keeps_nobody_from_following_the_others(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes, link_proxy() as between:
        a, b, c = await nodes.start("a", node_url=between.url), await nodes.start("b"), await nodes.start("c")
        between.target = a.port
        between.set("silent")
        one, three = await nodes.client(a), await nodes.client(c)
        async with following(b.url) as followed:
            await followed.until("session.created", await three.new_session())
            await one.new_session()
            between.set("open")
            await followed.find(is_reset("a"))
            await followed.until("session.created", await one.new_session())


async def test_who_comes_back_misses_nothing_and_at_another_node_is_told_to_list_again(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        a, b, c = [await nodes.start(name) for name in "abc"]
        one, two = await nodes.client(a), await nodes.client(b)
        async with following(b.url) as whole:
            async with following(b.url) as before:
                await before.until("session.created", await one.new_session())
            position = before.events[-1][0]
            missed = [await one.new_session(), await two.new_session()]
            async with following(b.url, after=position) as after:
                missed.append(await one.new_session())
                for followed in (whole, after):
                    for session in missed:
                        await followed.until("session.created", session)
                start = [at for at, _ in whole.events].index(position)
                same = min(len(whole.events) - start - 1, len(after.events))
                assert whole.events[start + 1 :][:same] == after.events[:same]
        async with following(c.url, after=position) as elsewhere:
            await elsewhere.until("reset")
            assert elsewhere.types()[0] == "reset"
            await elsewhere.until("session.created", await one.new_session())


async def test_one_who_comes_back_after_nobody_followed_misses_nothing(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        a, b = await nodes.start("a"), await nodes.start("b")
        one = await nodes.client(a)
        async with following(b.url) as before:
            await before.until("session.created", await one.new_session())
        missed = await one.new_session()
        async with following(b.url, after=before.events[-1][0]) as after:
            await after.until("session.created", missed)
            assert "reset" not in after.types()
