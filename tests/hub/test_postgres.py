"""A server whose history is in PostgreSQL: what clients saw is there, whatever happens to server or database."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.postgres import PASSWORD, PostgresServer
from support.rpc import Events, RpcClient, connected, prompt_params
from support.server import running_server


def numbers_seen(events: Events) -> list[int]:
    return [int(update["content"]["text"].split(" ")[0]) for update in events.updates("agent_message_chunk")]


async def numbers_kept(client: RpcClient, session: str) -> list[int]:
    found: list[int] = []
    after, has_more = 0, True
    while has_more:
        params = {"sessionId": session, "after": after, "limit": 5000}
        page = await client.call("_sandboxagent/session/events", params)
        for event in page["events"]:
            assert event["sequence"] == after + 1
            after = event["sequence"]
            update = event["envelope"].get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                found.append(int(update["content"]["text"].split(" ")[0]))
        has_more = page["hasMore"]
    return found


async def prompt_async(client: RpcClient, session: str, text: str, **meta: Any) -> None:
    params = prompt_params(session, text, **meta)
    message = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params}
    await client.post(message, Prefer="respond-async")


@pytest.mark.timeout(120)
async def test_kill_9_in_a_turn_loses_nothing_that_a_client_saw_and_the_session_goes_on(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    flags = ("--no-token", "--store", postgres.new_database())
    async with running_server(tmp_path, *flags) as server, connected(server.url) as client:
        session = await client.new_session(title="the long one")
        async with client.stream() as events:
            await prompt_async(client, session, "chunks 20000 50; hang", turnId="t1")
            await events.wait_until(lambda e: len(e.ids) > 2_000)
            server.kill()
            await events.wait_until(lambda e: e.is_over)
        seen = numbers_seen(events)
        assert len(seen) >= 2_000
    async with running_server(tmp_path, *flags) as server, connected(server.url) as client:
        listed = (await client.call("session/list"))["sessions"]
        assert [(s["sessionId"], s["title"]) for s in listed] == [(session, "the long one")]
        kept = await numbers_kept(client, session)
        assert kept[: len(seen)] == seen == list(range(1, len(seen) + 1))
        assert kept == list(range(1, len(kept) + 1))
        again = await client.prompt(session, "chunks 1 1", turnId="t1")
        assert again["error"]["data"]["turnId"] == "t1"  # it ran when the server died: it is not run again
        assert (await client.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"
        assert (await client.prompt(session, "hello", turnId="t2"))["result"]["stopReason"] == "end_turn"
        assert PASSWORD not in server.log_text()
        health = (await client.http.get("/v1/health")).text
        assert "postgresql://" in health
        assert PASSWORD not in health


@pytest.mark.timeout(120)
async def test_a_database_that_restarts_in_a_turn_delays_it_and_costs_nothing(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    flags = ("--no-token", "--store", own_postgres.new_database())
    async with running_server(tmp_path, *flags) as server, connected(server.url) as client:
        session = await client.new_session()
        async with client.stream() as events:
            prompting = asyncio.create_task(client.prompt(session, "slow 60"))
            await events.wait_until(lambda e: len(e.updates("agent_message_chunk")) > 5)
            await asyncio.to_thread(own_postgres.stop)
            told = len(events.ids)
            unread = await client.request("_sandboxagent/session/events", {"sessionId": session})
            assert "postgresql://127.0.0.1" in unread["error"]["message"]
            assert PASSWORD not in str(unread)
            await events.wait_for(lambda m: "store_degraded" in str(m))  # the next write has found it away
            refused = await client.prompt(session, "hello", turnId="later")
            assert refused["error"]["data"]["type"].endswith("store_degraded")
            assert len([m for m in events.messages[told:] if m.get("method") == "session/update"]) <= 2
            await asyncio.to_thread(own_postgres.start)
            assert (await prompting)["result"]["stopReason"] == "end_turn"
            await events.wait_for(lambda m: "store_ok" in str(m))
            ticks = [update["content"]["text"].strip() for update in events.updates("agent_message_chunk")]
            assert ticks == [f"tick {number}" for number in range(1, 61)]
        assert (await client.prompt(session, "hello", turnId="later"))["result"]["stopReason"] == "end_turn"


@pytest.mark.timeout(120)
async def test_a_paused_server_whose_session_was_taken_over_writes_nothing_and_tells_who_waits(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.new_database()
    database = url.rpartition("/")[2]
    env = {"SANDBOX_AGENT_MOCK_STATE": str(tmp_path / "shared")}
    flags = ("--no-token", "--store", url)
    async with (
        running_server(tmp_path / "a", *flags, env=env) as first,
        running_server(tmp_path / "b", *flags, env=env) as second,
        connected(first.url) as one,
        connected(second.url) as two,
    ):
        session = await one.new_session()
        elsewhere = await two.prompt(session, "hello")
        assert elsewhere["error"]["data"]["type"].endswith("session_elsewhere")
        async with one.stream() as events:
            prompting = asyncio.create_task(one.prompt(session, "slow 4000"))
            await events.wait_until(lambda e: len(e.updates("agent_message_chunk")) > 5)
            os.kill(first.pid, signal.SIGSTOP)
            try:
                postgres.sql("UPDATE sandbox_agent.nodes SET expires = now() - interval '1 s'", database)
                assert (await two.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"
            finally:
                os.kill(first.pid, signal.SIGCONT)
            answer = await prompting
            assert answer["error"]["data"]["type"].endswith("session_elsewhere"), answer
            await events.wait_for(lambda m: m.get("params", {}).get("code") == "session_elsewhere")
            seen = [update["content"]["text"].strip() for update in events.updates("agent_message_chunk")]
        said = await two.call("_sandboxagent/session/events", {"sessionId": session, "after": 0, "limit": 10_000})
        assert [event["sequence"] for event in said["events"]] == list(range(1, len(said["events"]) + 1))
        history = str(said["events"])
        assert all(f"'{tick}" in history or tick in history for tick in seen)
        assert (await two.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


async def test_what_is_wrong_with_the_address_ends_the_start_with_advice(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match="createdb nowhere") as caught:
        async with running_server(tmp_path, "--no-token", "--store", postgres.url("nowhere")):
            pass
    assert PASSWORD not in str(caught.value)


async def test_who_prompts_the_moment_the_session_is_there_hears_everything_once(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    flags = ("--no-token", "--store", postgres.new_database())
    async with running_server(tmp_path, *flags) as server, connected(server.url) as client, client.stream() as events:
        for number in range(20):
            session = await client.new_session()
            await client.prompt(session, f"chunks {number + 1} 1")
        await events.wait_until(lambda e: len(numbers_seen(e)) >= 210)
        assert numbers_seen(events) == [part for number in range(20) for part in range(1, number + 2)]
