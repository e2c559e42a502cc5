"""A turn: its updates, its end, and leaving it early."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from sandbox_agent import SandboxAgent
from sandbox_agent.client import Session, UnknownUpdate, text_of
from sandbox_agent.client.updates import read_update
from sandbox_agent.errors import AgentExited, RequestFailed, SessionEnded, UnknownAgent
from support.server import running_server


@asynccontextmanager
async def a_session(home: Path, **options: Any) -> AsyncIterator[Session]:
    async with running_server(home) as server, SandboxAgent.connect(server.url, **options) as sandbox:
        yield await sandbox.create_session(agent="mock", cwd="/tmp")


async def test_updates_come_typed_and_the_stop_reason_is_there_after_them(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        turn = session.prompt("thought Hmm")
        assert turn.stop_reason is None
        updates = [update async for update in turn]
    thoughts = [u for u in updates if isinstance(u, schema.AgentThoughtChunk)]
    assert [t.content.text for t in thoughts if isinstance(t.content, schema.TextContentBlock)] == ["Hmm"]
    assert "done" in "".join(map(text_of, updates))
    assert turn.stop_reason == "end_turn"


async def test_the_same_updates_come_as_raw_envelopes(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        envelopes = [envelope async for envelope in session.prompt("plan").envelopes()]
    assert {envelope["method"] for envelope in envelopes} == {"session/update"}
    assert {envelope["params"]["sessionId"] for envelope in envelopes} == {session.id}
    assert "plan" in {envelope["params"]["update"]["sessionUpdate"] for envelope in envelopes}


async def test_awaiting_a_turn_runs_it_to_its_end(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        answer = await session.prompt("hello")
        assert answer.stop_reason == "end_turn"


async def test_a_turn_runs_once(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        turn = session.prompt("hello")
        await turn
        with pytest.raises(RuntimeError, match="once"):
            await turn


async def test_leaving_the_iteration_cancels_the_turn(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        async for update in session.prompt("slow 100000"):
            if text_of(update):
                break
        async with asyncio.timeout(30):  # it would have to wait for the slow one
            assert "hello" in await session.prompt("hello").text()


async def test_cancelling_the_task_that_iterates_cancels_the_turn(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        started = asyncio.Event()

        async def run() -> None:
            async for _ in session.prompt("slow 100000"):
                started.set()

        task = asyncio.create_task(run())
        async with asyncio.timeout(30):
            await started.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert "hello" in await session.prompt("hello").text()


async def test_cancel_lets_the_iteration_go_on_to_the_stop_reason(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        turn = session.prompt("slow 100000")
        async with asyncio.timeout(30):
            async for update in turn:
                if text_of(update).startswith("tick 2"):
                    await session.cancel()
        assert turn.stop_reason == "cancelled"


async def test_two_prompts_at_once_run_one_after_the_other_and_each_gets_its_own_updates(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        first, second = await asyncio.gather(session.prompt("slow 5").text(), session.prompt("again").text())
    assert [first, second] == ["tick 1 tick 2 tick 3 tick 4 tick 5 ", "again"]


async def test_sessions_of_one_connection_do_not_mix(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        sessions = [await sandbox.create_session(agent="mock", cwd="/tmp") for _ in range(5)]
        said = await asyncio.gather(*(s.prompt(f"I am {n}").text() for n, s in enumerate(sessions)))
    assert said == [f"I am {n}" for n in range(5)]


async def test_an_error_of_the_agent_is_raised_with_its_code(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        with pytest.raises(RequestFailed) as failure:
            await session.prompt("fail -32050")
    assert failure.value.remote_code == -32050


async def test_the_death_of_the_agent_is_raised_with_its_exit_code_and_the_next_turn_runs(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        with pytest.raises(AgentExited) as failure:
            await session.prompt("crash 7")
        assert failure.value.data["exitCode"] == 7
        assert await session.prompt("hello").text() == "hello"


async def test_an_unknown_agent_is_said_with_those_that_are_known(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        with pytest.raises(UnknownAgent, match="mock"):
            await sandbox.create_session(agent="nobody")


async def test_a_terminated_session_takes_no_more_prompts(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        await session.terminate()
        await session.terminate()
        assert session.is_ended
        with pytest.raises(SessionEnded):
            await session.prompt("hello")


async def test_a_turn_that_nobody_reads_holds_the_connection_and_loses_nothing(tmp_path: Path) -> None:
    async with a_session(tmp_path) as session:
        numbers: list[int] = []
        async for update in session.prompt("chunks 50000 40"):
            if not numbers:
                await asyncio.sleep(0.5)  # more has come by now than a mailbox holds
            if text := text_of(update):
                numbers.append(int(text.split(" ")[0]))
    assert numbers == list(range(1, 50_001))


async def test_a_turn_that_was_started_goes_on_without_the_program_and_leaves_its_questions_to_others(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path) as server:
        async with SandboxAgent.connect(server.url) as sandbox:
            session = await sandbox.create_session(agent="mock", cwd="/tmp")
            turn_ids = [await session.prompt("tool ls").start(), await session.prompt("behind it").start()]
        async with SandboxAgent.connect(server.url, on_permission=lambda request: request.allow()) as other:
            same = await other.resume_session(session.id, agent="mock")
            async with asyncio.timeout(30):
                await same.prompt("after it")
            events = [event.envelope async for event in same.events()]
    prompts = [event for event in events if event.get("method") == "session/prompt"]
    assert [prompt["params"]["_meta"]["sandboxagent.dev"]["turnId"] for prompt in prompts][:2] == turn_ids
    results = [event["result"] for event in events if "stopReason" in event.get("result", {})]
    assert [result["stopReason"] for result in results] == ["end_turn"] * 3


def test_an_update_that_the_schema_does_not_know_is_passed_on_whole() -> None:
    raw = {"sessionUpdate": "hologram", "depth": 3}
    update = read_update({"method": "session/update", "params": {"sessionId": "s", "update": raw}})
    assert update == UnknownUpdate("hologram", raw)
