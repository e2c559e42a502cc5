"""OpenCode's clients at a node, and agents at another: what they wait for is seen and answered at any node."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.core.users import Right
from sandbox_agent.http.access.tokens import TokenFile
from support.cluster import cluster
from support.opencode import DEADLINE, Heard, OpenCode, following, opencode
from support.postgres import PostgresServer

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly
PASSED_ON = {"X-Sandbox-Agent-User": "admin"}


@asynccontextmanager
async def two_nodes(postgres: PostgresServer, home: Path) -> AsyncIterator[tuple[OpenCode, OpenCode]]:
    """Clients at the nodes a and b."""
    async with cluster(postgres, home) as nodes:
        first, second = await nodes.start("a", drain_ms=100), await nodes.start("b")
        async with opencode(first.url) as one, opencode(second.url) as two:
            yield one, two


async def listed(client: OpenCode, path: str, count: int = 1) -> list[dict[str, Any]]:
    """What is open, as soon as it is so much."""
    async with asyncio.timeout(DEADLINE):
        while len(found := await client.get(path)) != count:
            await asyncio.sleep(0.02)
    return list(found)


def text_of(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")


@pytest.mark.promise("P-cluster-1")
async def test_a_permission_of_another_nodes_agent_is_listed_told_and_answered(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with two_nodes(postgres, tmp_path) as (one, two), following(two) as heard:
        session = await one.new_session()
        for number, (reply, said) in enumerate([("once", "The tool ran."), ("reject", "The permission was rejected.")]):
            turn = asyncio.create_task(one.prompt(session, "tool ls"))
            (asked,) = await listed(two, "/permission")
            assert await one.get("/permission") == [asked]
            assert (await two.get("/api/permission/request"))["data"][0]["id"] == asked["id"]
            assert await two.get("/permission", directory="/nowhere") == []
            assert await heard.first("permission.asked", number + 1) == asked
            assert (await two.get("/session/status"))[session] == {"type": "busy"}
            assert list((await two.get("/api/session/active"))["data"]) == [session]
            assert await two.post(f"/permission/{asked['id']}/reply", {"reply": reply}) is True
            assert text_of(await turn) == said
            assert (await heard.first("permission.replied", number + 1))["reply"] == reply
            assert await two.get("/permission") == []
        assert await two.get("/session/status") == {}


async def test_a_permission_below_its_session_is_answered_at_another_node(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with two_nodes(postgres, tmp_path) as (one, two):
        session = await one.new_session()
        turn = asyncio.create_task(one.prompt(session, "edit notes.txt"))
        (asked,) = await listed(two, "/permission")
        await two.post(f"/session/{session}/permissions/{asked['id']}", {"response": "always"})
        await turn
        turn = asyncio.create_task(one.prompt(session, "edit notes.txt"))
        (asked,) = await listed(two, "/permission")
        address = f"/opencode/api/session/{session}/permission/{asked['id']}/reply"
        assert (await two.http.post(address, json={"reply": "once"})).status_code == 204
        assert "completed" in (await turn)["info"]["time"]


async def test_questions_of_another_nodes_agent_are_answered_or_rejected(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with two_nodes(postgres, tmp_path) as (one, two), following(two) as heard:
        session = await one.new_session()
        turn = asyncio.create_task(one.prompt(session, "question"))
        (asked,) = await listed(two, "/question")
        assert await heard.first("question.asked") == asked
        await two.post(f"/question/{asked['id']}/reply", {"answers": [["Green"]]})
        assert '"green"' in text_of(await turn)
        assert (await heard.first("question.replied"))["answers"] == [["Green"]]
        turn = asyncio.create_task(one.prompt(session, "elicit"))
        (form,) = await listed(two, "/question")
        await two.post(f"/question/{form['id']}/reject")
        assert (await heard.first("question.rejected"))["requestID"] == form["id"]
        assert "decline" in text_of(await turn)


async def test_a_turn_of_another_node_is_aborted(postgres: PostgresServer, tmp_path: Path) -> None:
    async with two_nodes(postgres, tmp_path) as (one, two):
        session = await one.new_session()
        for path in (f"/session/{session}/abort", f"/api/session/{session}/interrupt"):
            turn = asyncio.create_task(one.prompt(session, "hang"))
            await listed(two, "/session/status")
            assert (await two.http.post(f"/opencode{path}")).is_success
            assert (await turn)["info"]["error"]["name"] == "MessageAbortedError"
        assert await two.get("/session/status") == {}


async def test_one_who_comes_to_another_node_in_a_turn_is_told_that_it_runs_and_what_it_asks(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with two_nodes(postgres, tmp_path) as (one, two):
        session = await one.new_session()
        turn = asyncio.create_task(one.prompt(session, "tool ls"))
        (asked,) = await listed(one, "/permission")
        async with following(two) as heard:
            assert await heard.first("permission.asked") == asked
            assert statuses(heard, session) == ["busy"]
            assert "MessageAbortedError" not in str(heard.messages(session))
            await two.post(f"/permission/{asked['id']}/reply", {"reply": "once"})
            await turn
            await heard.until(lambda heard: statuses(heard, session)[-1] == "idle")


async def test_a_turn_that_was_lost_with_its_node_is_told_as_aborted_at_another(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        async with opencode(first.url) as one, opencode(second.url) as two:
            session = await one.new_session()
            await one.prompt_async(session, "tool ls")
            await listed(two, "/permission")
            first.kill()
            await first.process.wait()
            assert await two.get("/permission") == []
            async with following(two) as heard:
                await heard.until(lambda heard: statuses(heard, session))
                assert statuses(heard, session) == ["idle"]
                assert "MessageAbortedError" in str(heard.messages(session))
                assert heard.of("permission.asked") == []


async def test_a_node_that_does_not_answer_is_left_out_and_holds_nobody_up_for_long(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a", lease_ms=30_000, drain_ms=100), await nodes.start("b", drain_ms=100)
        async with opencode(first.url) as one, opencode(second.url) as two:
            far, near = await one.new_session(), await two.new_session()
            for client, session in ((one, far), (two, near)):
                await client.prompt_async(session, "tool ls")
            (mine, _) = await listed(two, "/permission", 2)
            assert mine["sessionID"] == near
            first.process.send_signal(signal.SIGSTOP)
            try:
                assert await two.get("/permission") == [mine]
                assert await two.get("/session/status") == {near: {"type": "busy"}}
                assert (await two.http.post("/opencode/question/que_none/reject")).status_code == 404
            finally:
                first.process.send_signal(signal.SIGCONT)
            await listed(two, "/permission", 2)
        assert second.log_text().count("node does not answer") == 1


async def test_what_a_node_asks_another_is_answered_by_that_one_alone(postgres: PostgresServer, tmp_path: Path) -> None:
    async with two_nodes(postgres, tmp_path) as (one, two):
        await one.prompt_async(await one.new_session(), "tool ls")
        (asked,) = await listed(two, "/permission")
        for path in ("/permission", "/session/status"):
            answer = await two.http.get(f"/opencode{path}", headers=PASSED_ON)
            assert len(answer.json()) == 0, path
        reply = f"/opencode/permission/{asked['id']}/reply"
        assert (await two.http.post(reply, json={"reply": "once"}, headers=PASSED_ON)).status_code == 404
        assert (await two.http.post("/opencode/permission/per_none/reply", json={"reply": "once"})).status_code == 404
        assert (await two.http.post(reply, json={"reply": "perhaps"})).status_code == 400
        assert await one.get("/permission") == [asked]


async def test_the_right_of_a_user_decides_at_another_node_too(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        tokens = TokenFile(tmp_path / "b" / "data")
        reader, writer = tokens.add("the-reader", Right.READ), tokens.add("the-writer", Right.PROMPT)
        first, second = await nodes.start("a", token="owner"), await nodes.start("b", token="owner")
        holders = [(first, "owner"), (second, reader), (second, writer)]
        clients = [opencode(node.url, Authorization=f"Bearer {token}") for node, token in holders]
        async with clients[0] as one, clients[1] as reading, clients[2] as writing:
            turn = asyncio.create_task(one.prompt(await one.new_session(), "tool ls"))
            (asked,) = await listed(reading, "/permission")
            reply = f"/permission/{asked['id']}/reply"
            assert (await reading.http.post(f"/opencode{reply}", json={"reply": "once"})).status_code == 403
            assert await writing.post(reply, {"reply": "once"}) is True
            assert text_of(await turn) == "The tool ran."


def statuses(heard: Heard, session: str) -> list[str]:
    return [told["status"]["type"] for told in heard.of("session.status") if told["sessionID"] == session]
