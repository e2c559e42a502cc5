"""How it ends: the agent is killed and comes back, and a stop leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from support.proc_table import group_members
from support.real_world import DEADLINE, RealWorld, reply_to, says
from support.waiting import until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


@pytest.mark.feature("killed and resumed")
async def test_a_killed_agent_answers_its_turn_with_an_error_and_the_session_goes_on(world: RealWorld) -> None:
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        word = world.word()
        await reply_to(client, events, session, f"remember {word}")
        turn = asyncio.create_task(client.prompt(session, "SLOW"))
        await events.wait_until(says("slow1"), deadline=DEADLINE)
        before = set(world.processes())
        os.kill(world.agent_pid(), signal.SIGKILL)
        answer = await turn
        assert answer["error"]["code"] == -32010, answer
        await until(lambda: not before & set(world.processes()), deadline=DEADLINE)
        world.let_a_minute_pass()

        later = world.word()
        assert f"ECHO[and {later}]" in await reply_to(client, events, session, f"and {later}")
        assert any(word in seen.request for seen in world.asked(later))


@pytest.mark.feature("a stop in a turn leaves nothing")
async def test_a_stop_in_the_middle_of_a_turn_leaves_no_process(world: RealWorld) -> None:
    async with world.client() as client, client.stream() as events:
        session = await world.new_session(client)
        turn = asyncio.create_task(client.prompt(session, "SLOW"))
        await events.wait_until(says("slow1"), deadline=DEADLINE)
        groups = world.groups()
        assert groups
        assert await world.server.stop() == 0
        assert "error" in await turn
        await events.wait_until(lambda e: e.is_over)
    assert not [pid for group in groups for pid in group_members(group)]
    assert not world.processes()
    await world.restart()
