"""The server goes away and comes back on the same port and data: the same session object goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.client import text_of
from sandbox_agent.errors import AgentExited
from support.server import running_server


@pytest.mark.promise("P-session-2")
async def test_a_session_goes_on_after_the_server_was_killed_between_two_turns(tmp_path: Path) -> None:
    async with running_server(tmp_path) as first, SandboxAgent.connect(first.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert await session.prompt("one").text() == "one"
        first.kill()
        await first.process.wait()
        async with running_server(tmp_path, port=first.port):
            async with asyncio.timeout(40):
                turn = session.prompt("recall")
                assert await turn.text() == "1. one"
            assert turn.stop_reason == "end_turn"


@pytest.mark.promise("P-sdk-3")
@pytest.mark.promise("P-session-5")
async def test_a_turn_that_was_running_when_the_server_was_killed_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    async with running_server(tmp_path) as first, SandboxAgent.connect(first.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        seen: list[str] = []
        ready, done = asyncio.Event(), asyncio.Event()

        async def run(group: asyncio.TaskGroup) -> None:
            async for update in session.prompt("slow 100000"):
                seen.extend(filter(None, [text_of(update)]))
                if len(seen) == 3 and not ready.is_set():
                    first.kill()
                    await first.process.wait()
                    group.create_task(_serve_again(tmp_path, first.port, ready, done))
                    await ready.wait()

        async with asyncio.timeout(50), asyncio.TaskGroup() as group:
            with pytest.raises(AgentExited) as failure:
                await run(group)
            assert failure.value.retryable
            assert seen == [f"tick {number} " for number in range(1, len(seen) + 1)]
            assert "slow 100000" in await session.prompt("recall").text()
            done.set()


async def test_a_program_that_only_watches_hears_of_a_session_again_after_a_restart(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path) as first,
        SandboxAgent.connect(first.url) as driver,
        SandboxAgent.connect(first.url) as watcher,
    ):
        session = await driver.create_session(agent="mock", cwd="/tmp")
        watched = await watcher.resume_session(session.id, agent="mock")
        heard: asyncio.Queue[str] = asyncio.Queue()
        watching = asyncio.create_task(_listen(watched, heard))
        await session.prompt("before").text()
        assert await _until(heard, "before")
        first.kill()
        await first.process.wait()
        async with running_server(tmp_path, port=first.port), asyncio.timeout(40):
            await watched.set_mode("code")  # both are back once each has been answered
            await session.prompt("after").text()
            assert await _until(heard, "after")
        watching.cancel()


async def _serve_again(home: Path, port: int, ready: asyncio.Event, done: asyncio.Event) -> None:
    async with running_server(home, port=port):
        ready.set()
        await done.wait()


async def _listen(session: object, heard: asyncio.Queue[str]) -> None:
    async for update in session.updates():  # type: ignore[attr-defined]
        heard.put_nowait(text_of(update))


async def _until(heard: asyncio.Queue[str], text: str) -> bool:
    said = ""
    async with asyncio.timeout(30):
        while text not in said:
            said += await heard.get()
    return True
