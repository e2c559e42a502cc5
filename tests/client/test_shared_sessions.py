"""Several programs at one session: each turn has its own updates, whoever else prompts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from acp import schema

from sandbox_agent import SandboxAgent
from sandbox_agent.client import PermissionRequest, Session, text_of
from support.server import running_server

TICKS = "".join(f"tick {number} " for number in range(1, 11))


async def _behind(first: Session, other: SandboxAgent, prompt: str) -> tuple[str, asyncio.Task[str]]:
    """What the first turn said, and the turn that the other client sent when it heard the first tick of it."""
    second: asyncio.Task[str] | None = None
    said = ""
    async for update in first.prompt("slow 10"):
        said += text_of(update)
        if second is None and text_of(update):
            same = await other.resume_session(first.id, agent="mock")
            second = asyncio.create_task(same.prompt(prompt).text())
    assert second is not None
    return said, second


async def test_a_turn_that_waited_behind_anothers_has_only_its_own_text(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url) as a,
        SandboxAgent.connect(server.url) as b,
        asyncio.timeout(40),
    ):
        said, second = await _behind(await a.create_session(agent="mock", cwd="/tmp"), b, "mine")
        assert said == TICKS
        assert await second == "mine"


async def test_a_prompt_that_is_left_while_it_waits_is_taken_back_and_the_turn_before_it_goes_on(
    tmp_path: Path,
) -> None:
    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url) as a,
        SandboxAgent.connect(server.url) as b,
        asyncio.timeout(40),
    ):
        session = await a.create_session(agent="mock", cwd="/tmp")
        turn = session.prompt("slow 10")
        waiting: asyncio.Task[str] | None = None
        said = ""
        async for update in turn:
            said += text_of(update)
            if waiting is None and text_of(update):
                same = await b.resume_session(session.id, agent="mock")
                waiting = asyncio.create_task(same.prompt("never").text())
            elif waiting is not None and text_of(update).startswith("tick 5"):
                waiting.cancel()
        assert (said, turn.stop_reason) == (TICKS, "end_turn")
        assert await session.prompt("recall").text() == "1. slow 10"


async def test_what_is_asked_in_anothers_turn_is_not_rejected_by_one_who_waits(tmp_path: Path) -> None:
    waits = asyncio.Event()

    async def decide(request: PermissionRequest) -> Any:
        await waits.wait()
        return request.allow()

    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url, on_permission=decide) as a,
        SandboxAgent.connect(server.url) as b,
        asyncio.timeout(40),
    ):
        session = await a.create_session(agent="mock", cwd="/tmp")
        same = await b.resume_session(session.id, agent="mock")
        first = asyncio.create_task(_statuses(session, "tool ls"))
        envelopes = same.envelopes()
        async for envelope in envelopes:
            if envelope["method"] == "session/update":
                break
        second = asyncio.create_task(same.prompt("mine").text())
        async for envelope in envelopes:
            if envelope["method"].endswith("/turn_queued"):
                waits.set()
                break
        assert (await first)[-1] == "completed"
        assert await second == "mine"


async def _statuses(session: Session, prompt: str) -> list[Any]:
    return [u.status async for u in session.prompt(prompt) if isinstance(u, schema.ToolCallProgress)]
