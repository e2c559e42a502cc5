"""A client of version 2 of ACP and a real agent, whichever version that speaks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.acp_schema import check, needs_schema
from support.real_world import DEADLINE, RealWorld, says
from support.rpc import Events, Message, RpcClient, is_permission, option_of_kind

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300), needs_schema]

NEVER_ASKS = {"pi"}


async def _turn(client: RpcClient, events: Events, session: str, text: str) -> Message:
    """The `state_update` that ends the turn."""
    before = len(events.messages)
    answer = await client.prompt(session, text)
    check(2, "PromptResponse", answer["result"])
    ended = await events.wait_for(_is_idle, after=before, deadline=DEADLINE)
    update: Message = ended["params"]["update"]
    return update


def _is_idle(message: Message) -> bool:
    update = message.get("params", {}).get("update", {})
    return bool(update.get("sessionUpdate") == "state_update" and update.get("state") == "idle")


def _check_all(events: Events) -> None:
    for message in events.messages:
        if message.get("method") == "session/update":
            check(2, "UpdateSessionNotification", message["params"])
        elif is_permission(message):
            check(2, "RequestPermissionRequest", message["params"])


@pytest.mark.feature("version 2 client")
async def test_a_client_of_version_2_holds_a_whole_conversation(world: RealWorld, work: Path) -> None:
    made = work / world.word()
    async with world.client(version=2) as client, client.stream() as events:
        check(2, "InitializeResponse", client.initialized)
        opened = await client.call("session/new", {"cwd": str(world.work)})
        check(2, "NewSessionResponse", opened)
        session = opened["sessionId"]
        turn = asyncio.create_task(_turn(client, events, session, f"RUN:touch {made}"))
        if world.agent not in NEVER_ASKS:
            request = await events.wait_for(is_permission, deadline=DEADLINE)
            await client.answer(request, option_of_kind(request, "allow_once"))
        assert (await turn).get("stopReason", "end_turn") == "end_turn"
        assert made.exists()
        assert events.updates("tool_call_update")

        slow = asyncio.create_task(_turn(client, events, session, f"{world.word()} SLOW:40"))
        await events.wait_until(says("slow0"), deadline=DEADLINE)
        await client.notify("session/cancel", {"sessionId": session})
        assert (await slow).get("stopReason") == "cancelled"
        _check_all(events)
    async with world.client(version=2) as again, again.stream() as replayed:
        params = {"sessionId": session, "cwd": str(world.work), "replayFrom": {"type": "start"}}
        check(2, "ResumeSessionResponse", await again.call("session/resume", params))
        await replayed.wait_until(says("slow0"), deadline=DEADLINE)
        assert "result" in await again.request("session/close", {"sessionId": session})
        _check_all(replayed)
