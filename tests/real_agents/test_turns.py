"""One client, one session: handshake, text, permissions, cancels."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.real_world import DEADLINE, RealWorld, reply_to, says
from support.rpc import is_permission, option_of_kind

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

NEVER_ASKS = {"pi"}


@pytest.mark.feature("handshake")
async def test_the_handshake_is_the_agents_own_with_our_part_added(
    world: RealWorld, record_property: Callable[[str, object], None]
) -> None:
    await world.restart()  # so that the time is that of a start
    began = time.monotonic()
    async with world.client() as client:
        record_property("fact:starts in", f"{time.monotonic() - began:.1f} s")
        record_property("fact:version", client.initialized["agentInfo"]["version"])
        assert client.initialized["protocolVersion"] == 1
        ours = client.initialized["_meta"]["sandboxagent.dev"]
        assert (ours["agent"], ours["connectionId"]) == (world.agent, client.id)
        assert client.initialized["agentCapabilities"]["loadSession"] is True


@pytest.mark.feature("streamed text")
async def test_text_comes_while_the_turn_runs(world: RealWorld, record_property: Callable[[str, object], None]) -> None:
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        word = world.word()
        turn = asyncio.create_task(client.prompt(session, f"{word} SLOW:12"))
        await events.wait_until(says("slow0"), deadline=DEADLINE)
        assert not turn.done()
        answer = await turn
        assert answer["result"]["stopReason"] == "end_turn"
        await events.wait_until(says("slow11"), deadline=DEADLINE)
        assert [f"slow{n}" for n in range(12)] == [w for w in events.text().split() if w.startswith("slow")]
        assert len(events.updates("agent_message_chunk")) > 2
        assert world.asked(word)
        record_property("fact:memory, one session", f"{world.memory() >> 20} MB")


@pytest.mark.feature("permission allowed")
async def test_a_tool_runs_when_its_permission_is_given(world: RealWorld, work: Path) -> None:
    made = work / world.word()
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        turn = asyncio.create_task(client.prompt(session, f"RUN:touch {made}"))
        if world.agent not in NEVER_ASKS:
            request = await events.wait_for(is_permission, deadline=DEADLINE)
            assert not made.exists()
            await client.answer(request, option_of_kind(request, "allow_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        assert made.exists()
        assert events.updates("tool_call") or events.updates("tool_call_update")  # gemini sends the second only
        assert any(map(is_permission, events.messages)) == (world.agent not in NEVER_ASKS)


@pytest.mark.feature("permission rejected")
async def test_a_tool_does_not_run_when_its_permission_is_refused(world: RealWorld, work: Path) -> None:
    if world.agent in NEVER_ASKS:
        pytest.skip("never asks")
    made = work / world.word()
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        turn = asyncio.create_task(client.prompt(session, f"RUN:touch {made}"))
        request = await events.wait_for(is_permission, deadline=DEADLINE)
        await client.answer(request, option_of_kind(request, "reject_once"))
        assert "result" in await turn
        assert not made.exists()
        assert "ECHO" in await reply_to(client, events, session, "still there?")


@pytest.mark.feature("cancel in a slow turn")
async def test_a_slow_turn_ends_when_it_is_cancelled_and_the_model_is_let_go(world: RealWorld) -> None:
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        word = world.word()
        turn = asyncio.create_task(client.prompt(session, f"{word} SLOW"))
        await events.wait_until(says("slow1"), deadline=DEADLINE)
        await client.notify("session/cancel", {"sessionId": session})
        answer = await turn
        assert answer["result"]["stopReason"] == "cancelled", answer
        await asyncio.to_thread(world.llm.wait_for, lambda seen: word in seen.turn.text and seen.aborted)
        assert "slow299" not in events.text()
        assert "ECHO" in await reply_to(client, events, session, "still there?")


@pytest.mark.feature("cancel with a permission open")
async def test_a_turn_that_waits_for_permission_ends_when_it_is_cancelled(world: RealWorld, work: Path) -> None:
    if world.agent in NEVER_ASKS:
        pytest.skip("never asks")
    made = work / world.word()
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        turn = asyncio.create_task(client.prompt(session, f"RUN:touch {made}"))
        request = await events.wait_for(is_permission, deadline=DEADLINE)
        await client.notify("session/cancel", {"sessionId": session})
        answer = await turn
        assert answer["result"]["stopReason"] == "cancelled", answer
        withdrawn = await events.wait_for(lambda m: m.get("method") == "$/cancel_request", deadline=DEADLINE)
        assert withdrawn["params"]["requestId"] == request["id"]
        assert not made.exists()
        assert "ECHO" in await reply_to(client, events, session, "still there?")
