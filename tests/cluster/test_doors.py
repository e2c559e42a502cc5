"""Clients of every transport, at another node than the session's: they see what a client of its own node sees."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.cluster import chunks, cluster, until_answered
from support.doors import DOORS, DoorClient, client_at
from support.opencode import following, opencode
from support.postgres import PostgresServer
from support.rpc import Message


@pytest.mark.timeout(120)
@pytest.mark.promise("P-cluster-1")
async def test_a_session_of_another_node_is_used_over_every_transport(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one = await nodes.client(first)
        for door in DOORS:
            session = await one.new_session()
            await one.prompt(session, "chunks 2 1")
            async with client_at(door, second.url) as two:
                await two.load(session)
                await two.events.wait_until(lambda e: len(chunks(e)) == 2)
                prompting = asyncio.create_task(two.prompt(session, "tool ls; chunks 3 1"))
                asked = await two.events.wait_for(lambda m: m.get("method") == "session/request_permission")
                allowed = {"outcome": {"outcome": "selected", "optionId": asked["params"]["options"][0]["optionId"]}}
                await two.answer(asked, allowed)
                answer = await prompting
                assert answer["result"]["stopReason"] == "end_turn", (door, answer)
                await two.events.wait_until(lambda e: chunks(e)[-3:] == ["1", "2", "3"])
                assert chunks(two.events)[:2] == ["1", "2"], door


@pytest.mark.timeout(120)
async def test_a_client_of_the_other_version_of_acp_uses_a_session_of_another_node(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one = await nodes.client(first)
        session = await one.new_session()
        async with client_at("rpc", second.url, version=2) as two:
            await two.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
            await two.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "chunks 3 1"}]})
            idle = '"state_update"'
            await two.events.wait_for(lambda m: idle in str(m).replace("'", '"') and "end_turn" in str(m))
            assert len(told(two)) == 3
            await first.stop(deadline=40)
            three = await nodes.client(await nodes.start("c"))
            await until_answered(three, session, "chunks 2 1")
            await until_answered(three, session, "chunks 1 1")
            await two.events.wait_until(lambda e: len(told(two)) >= 6)
            texts = [message["params"]["update"]["content"]["text"].strip() for message in told(two)]
            assert texts == ["1", "2", "3", "1", "2", "1"]


def told(client: DoorClient) -> list[Message]:
    return [m for m in client.events.messages if "agent_message_chunk" in str(m)]


@pytest.mark.timeout(120)
async def test_opencode_at_another_node_reads_prompts_and_is_told_as_it_happens(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        async with opencode(first.url) as one, opencode(second.url) as two, following(two) as heard:
            session = await one.new_session()
            await one.prompt(session, "hello there")
            await heard.until(
                lambda h: len(h.messages(session)) == 2 and "completed" in str(h.messages(session)[1]["info"])
            )
            assert "hello there" in str(heard.messages(session)[1]["parts"])
            assert [m["info"]["role"] for m in await two.messages(session)] == ["user", "assistant"]
            said = await two.prompt(session, "and again")
            assert "and again" in str(said["parts"])
            assert await two.messages(session) == await one.messages(session)
            assert [each["id"] for each in await two.get("/session")] == [session]
