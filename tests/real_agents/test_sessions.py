"""Several sessions, several clients, and sessions that outlive them: two at once, load, resume, model and mode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox_agent.core import config_options as setup
from support.real_world import DEADLINE, RealWorld, reply_to
from support.rpc import Events, RpcClient, is_permission, option_of_kind

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


def text_of(events: Events, session: str) -> str:
    own = [m for m in events.messages if m.get("params", {}).get("sessionId") == session]
    chunks = [m["params"]["update"] for m in own if m.get("method") == "session/update"]
    return "".join(u["content"].get("text", "") for u in chunks if u["sessionUpdate"] == "agent_message_chunk")


@pytest.mark.feature("two sessions at once")
async def test_two_sessions_run_at_once_and_do_not_mix(
    world: RealWorld, record_property: Callable[[str, object], None]
) -> None:
    async with world.client() as client, client.stream() as events:
        first, second = await world.new_session(client), await world.new_session(client)
        mark, slow = world.word(), world.word()
        running = asyncio.create_task(client.prompt(first, f"{slow} SLOW:300"))
        await events.wait_until(lambda e: "slow1" in text_of(e, first), deadline=DEADLINE)
        quick = await client.prompt(second, f"say {mark}")
        assert quick["result"]["stopReason"] == "end_turn"
        assert not running.done()
        await events.wait_until(lambda e: f"ECHO[say {mark}]" in text_of(e, second), deadline=DEADLINE)
        await client.notify("session/cancel", {"sessionId": first})
        assert (await running)["result"]["stopReason"] == "cancelled"
        assert "slow" not in text_of(events, second)
        assert mark not in text_of(events, first)
        record_property("fact:memory, several sessions", f"{world.memory() >> 20} MB")


@pytest.mark.feature("two clients on one session")
async def test_two_clients_see_one_turn_and_either_may_answer(world: RealWorld, work: Path) -> None:
    made = work / world.word()
    async with world.client() as alice, world.client() as bob, alice.stream() as seen, bob.stream() as watched:
        session = await world.new_session(alice)
        await reply_to(alice, seen, session, f"first {world.word()}")
        await bob.call("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        assert text_of(watched, session) == text_of(seen, session)

        turn = asyncio.create_task(alice.prompt(session, f"RUN:touch {made}"))
        if world.agent != "pi":  # which never asks
            asked = [await events.wait_for(is_permission, deadline=DEADLINE) for events in (seen, watched)]
            assert asked[0] == asked[1]
            await bob.answer(asked[1], option_of_kind(asked[1], "allow_once"))
            told = await seen.wait_for(lambda m: m.get("method") == "$/cancel_request", deadline=DEADLINE)
            assert told["params"]["requestId"] == asked[0]["id"]
        assert (await turn)["result"]["stopReason"] == "end_turn"
        assert made.exists()
        await watched.wait_until(lambda e: text_of(e, session) == text_of(seen, session), deadline=DEADLINE)


@pytest.mark.feature("load, also after a restart")
async def test_a_session_is_loaded_by_a_new_server_and_goes_on_with_its_context(world: RealWorld, work: Path) -> None:
    word = world.word()
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        await reply_to(client, events, session, f"remember {word}")
    await world.restart()
    async with world.client() as client, client.stream() as events:
        answer = await client.call("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        await events.wait_until(lambda e: f"ECHO[remember {word}]" in text_of(e, session), deadline=DEADLINE)
        assert text_of(events, session).count(f"ECHO[remember {word}]") == 1
        assert "readOnly" not in answer["_meta"]["sandboxagent.dev"], answer
        await _goes_on(world, client, events, session, word)


@pytest.mark.feature("resume, also after a restart")
async def test_a_session_is_resumed_by_a_new_server_without_a_replay(world: RealWorld, work: Path) -> None:
    word = world.word()
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        await reply_to(client, events, session, f"remember {word}")
    await world.restart()
    async with world.client() as client, client.stream() as events:
        await client.call("session/resume", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        assert text_of(events, session) == ""
        await _goes_on(world, client, events, session, word)


@pytest.mark.feature("set mode, either spelling")
async def test_a_mode_is_set_in_either_spelling(world: RealWorld) -> None:
    await _set_either_way(world, "mode", "session/set_mode", "modeId")


@pytest.mark.feature("set model, either spelling")
async def test_a_model_is_set_in_either_spelling(world: RealWorld) -> None:
    await _set_either_way(world, "model", "session/set_model", "modelId")


async def _goes_on(world: RealWorld, client: RpcClient, events: Events, session: str, word: str) -> None:
    """The next prompt works, and the model is told what was said before."""
    later = world.word()
    assert f"ECHO[and {later}]" in await reply_to(client, events, session, f"and {later}")
    assert any(word in seen.request for seen in world.asked(later))


async def _set_either_way(world: RealWorld, category: setup.Category, plain: str, field: str) -> None:
    async with world.client() as client:
        session = await world.new_session(client)
        choices, current = await _offered(client, session, category)
        if len(choices) < 2:
            pytest.skip(f"offers one {category} only" if choices else f"offers no {category}")
        first = next(choice for choice in choices if choice != current)
        second = next((choice for choice in choices if choice not in (first, current)), current)
        await client.call(plain, {"sessionId": session, field: first})
        assert (await _offered(client, session, category))[1] == first
        await client.call("session/set_config_option", {"sessionId": session, "configId": category, "value": second})
        assert (await _offered(client, session, category))[1] == second


async def _offered(client: RpcClient, session: str, category: setup.Category) -> tuple[list[str], str | None]:
    """What there is to choose from, and what is chosen, as a client that comes now is told."""
    found = setup.from_answer(await client.call("session/resume", {"sessionId": session, "cwd": "/", "mcpServers": []}))
    return [choice["id"] for choice in setup.choices(found, category)], setup.current(found, category)
