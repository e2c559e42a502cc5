"""What one door can do, all can: the same behaviour at each of them, and between them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.doors import DOORS, META, DoorClient, client_at
from support.rpc import Events, Message, is_permission, option_of_kind
from support.server import Server

CHUNK = "agent_message_chunk"
pytestmark = pytest.mark.parametrize("door", list(DOORS))


def says(text: str) -> Callable[[Events], bool]:
    return lambda events: text in events.text()


def of_session(client: DoorClient, session: str) -> str:
    chunks = [
        m["params"]["update"]["content"]["text"]
        for m in client.events.messages
        if m.get("method") == "session/update"
        and m["params"]["sessionId"] == session
        and m["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
    ]
    return "".join(chunks)


def is_method(name: str) -> Callable[[Message], bool]:
    return lambda message: message.get("method") == name


async def test_handshake_names_the_agent_and_what_the_server_adds(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client:
        assert client.initialized["protocolVersion"] == 1
        assert client.initialized["agentCapabilities"]["loadSession"] is True
        assert client.initialized["_meta"][META]["agent"] == "mock"


async def test_turn_streams_its_updates_and_ends_with_an_answer(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client:
        session = await client.new_session()
        answer = await client.prompt(session, "hello from a door")
        assert answer["result"]["stopReason"] == "end_turn"
        await client.events.wait_until(says("hello from a door"))


async def test_permission_is_asked_and_the_answer_goes_back(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client:
        session = await client.new_session()
        turn = client.start_prompt(session, "tool ls")
        asked = await client.events.wait_for(is_permission)
        assert asked["params"]["sessionId"] == session
        await client.answer(asked, option_of_kind(asked, "allow_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        statuses = [u.get("status") for u in client.events.updates("tool_call_update")]
        assert "completed" in statuses


async def test_cancel_ends_the_turn(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client:
        session = await client.new_session()
        turn = client.start_prompt(session, "slow")
        await client.events.wait_until(says("tick 1"))
        await client.notify("session/cancel", {"sessionId": session})
        assert (await turn)["result"]["stopReason"] == "cancelled"


async def test_two_sessions_run_side_by_side_without_mixing(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client:
        first, second = await client.new_session(), await client.new_session()
        turns = [client.start_prompt(first, "first " * 50), client.start_prompt(second, "second " * 50)]
        for turn in turns:
            assert (await turn)["result"]["stopReason"] == "end_turn"
        await client.events.wait_until(lambda _: len(of_session(client, first)) >= 299)
        await client.events.wait_until(lambda _: len(of_session(client, second)) >= 349)
        assert "second" not in of_session(client, first)
        assert "first" not in of_session(client, second)


@pytest.mark.parametrize("other", list(DOORS))
async def test_session_begun_at_one_door_is_watched_and_answered_at_another(
    door: str, other: str, server: Server
) -> None:
    async with client_at(door, server.url) as owner, client_at(other, server.url) as guest:
        session = await owner.new_session()
        assert (await owner.prompt(session, "before the guest"))["result"]["stopReason"] == "end_turn"
        await guest.load(session)
        await guest.events.wait_until(says("before the guest"))
        turn = owner.start_prompt(session, "tool ls")
        await owner.events.wait_for(is_permission)
        asked = await guest.events.wait_for(is_permission)
        await guest.answer(asked, option_of_kind(asked, "allow_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await owner.events.wait_for(is_method("$/cancel_request"))
        for client in (owner, guest):
            await client.events.wait_for(lambda m: _status(m) == "completed")


@pytest.mark.promise("P-stream-1")
async def test_events_that_came_while_the_client_was_away_are_replayed(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client, client_at("rpc", server.url) as watcher:
        session = await client.new_session()
        await watcher.load(session)
        turn = client.start_prompt(session, "slow 40")
        await client.events.wait_until(says("tick 2"))
        await client.drop()
        await watcher.events.wait_until(says("tick 10"))
        assert "tick 10" not in client.events.text()
        await client.reattach()
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await client.events.wait_until(says("tick 40"))
        assert client.events.text() == "".join(u["content"]["text"] for u in watcher.events.updates(CHUNK))


@pytest.mark.promise("P-session-1")
async def test_closing_the_connection_leaves_the_session(door: str, server: Server) -> None:
    async with client_at(door, server.url) as first:
        session = await first.new_session()
        await first.prompt(session, "remember this")
        await first.close()
    async with client_at(door, server.url) as second:
        await second.load(session)
        await second.events.wait_until(says("remember this"))
        assert (await second.prompt(session, "recall"))["result"]["stopReason"] == "end_turn"
        await second.events.wait_until(says("1. remember this"))


async def test_agent_death_answers_the_turn_with_exit_code_and_stderr(door: str, own_server: Server) -> None:
    async with client_at(door, own_server.url) as client:
        session = await client.new_session()
        answer = await client.prompt(session, "crash 7")
        assert answer["error"]["data"]["exitCode"] == 7
        assert answer["error"]["data"]["stderr"]["head"]
        assert (await client.prompt(session, "back again"))["result"]["stopReason"] == "end_turn"
        await client.events.wait_until(says("back again"))


@pytest.mark.promise("P-stream-3")
async def test_client_that_does_not_read_delays_nobody_and_misses_nothing(door: str, server: Server) -> None:
    async with client_at(door, server.url) as slow, client_at("rpc", server.url) as other:
        session = await slow.new_session()
        await other.load(session)
        await slow.stop_reading()
        assert (await other.prompt(session, "chunks 3000 4000"))["result"]["stopReason"] == "end_turn"
        await slow.drop()
        await slow.reattach()
        chunks = slow.events.updates
        await slow.events.wait_until(lambda _: len(chunks(CHUNK)) >= 3000, deadline=50)
        numbers = [int(u["content"]["text"].split(" ", 1)[0]) for u in chunks(CHUNK)]
        assert numbers == list(range(1, 3001))


async def test_error_from_the_agent_is_passed_on(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client:
        session = await client.new_session()
        assert (await client.prompt(session, "fail -32042"))["error"]["code"] == -32042
        assert "error" in await client.request("session/load", {"sessionId": "nobody", "cwd": "/", "mcpServers": []})


@pytest.mark.parametrize(
    "content",
    [b"{", b'"text"', b'{"jsonrpc":"1.0","id":1,"method":"x"}', b'{"jsonrpc":"2.0"}', b"\xff\xfe", b""],
    ids=["half", "string", "version", "neither", "binary", "empty"],
)
async def test_bad_input_is_refused_and_disturbs_nobody(door: str, content: bytes, server: Server) -> None:
    async with client_at(door, server.url) as other:
        session = await other.new_session()
        async with client_at(door, server.url) as bad:
            assert await bad.send_raw(content) == (1007 if door == "acp-ws" else 400)
        assert (await other.prompt(session, "still here"))["result"]["stopReason"] == "end_turn"


async def test_ids_of_any_kind_come_back_as_they_were_sent(door: str, server: Server) -> None:
    async with client_at(door, server.url) as client:
        for key in (0, -5, "a string", 2.5):
            assert (await client.request("session/list", {}, id=key))["id"] == key


def _status(message: Message) -> str | None:
    if message.get("method") != "session/update":
        return None
    status = message["params"]["update"].get("status")
    return status if isinstance(status, str) else None
