"""The SDK with an agent of ACP version 2: nothing of it shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from sandbox_agent import SandboxAgent
from sandbox_agent.client import Session, UnknownUpdate, text_of
from sandbox_agent.errors import AgentExited
from support.server import mock_agents, running_server


@asynccontextmanager
async def a_session(home: Path, **options: Any) -> AsyncIterator[tuple[SandboxAgent, Session]]:
    config = mock_agents(second="--protocol 2")
    async with (
        running_server(home, config=config) as server,
        SandboxAgent.connect(server.url, **options) as sandbox,
    ):
        yield sandbox, await sandbox.create_session(agent="second", cwd="/tmp")


async def test_a_turn_streams_typed_updates_asks_and_ends_with_its_stop_reason(tmp_path: Path) -> None:
    asked: list[str] = []

    def allow(request: Any) -> Any:
        asked.append(request.title)
        return request.allow()

    async with a_session(tmp_path) as (_, session):
        session.on_permission(allow)
        turn = session.prompt("edit a.txt; plan; thought Hmm; kinds")
        updates = [update async for update in turn]
        assert turn.stop_reason == "end_turn"
        assert asked == ["Edit /tmp/a.txt"]
        kinds = {type(update) for update in updates}
        assert {schema.ToolCallStart, schema.ToolCallProgress, schema.AgentPlanUpdate} <= kinds
        assert "Edited /tmp/a.txt." in "".join(map(text_of, updates))
        unknown = {update.kind for update in updates if isinstance(update, UnknownUpdate)}
        assert "state_update" not in unknown


async def test_what_works_is_told_and_cancelled_and_the_history_is_whole(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (sandbox, session):
        turn = asyncio.ensure_future(_stop_reason(session, "slow 100000"))
        async with asyncio.timeout(30):
            while not (await sandbox.api.get(f"/v1/sessions/{session.id}"))["isBusy"]:
                await asyncio.sleep(0.02)
        await session.cancel()
        assert await turn == "cancelled"
        assert not (await sandbox.api.get(f"/v1/sessions/{session.id}"))["isBusy"]
        events = [event async for event in session.events()]
        assert "state_update" in str(events)
        legacy = [event["type"] async for event in session.legacy_events()]
        assert legacy[-1] == "turn.ended"
        again = await sandbox.load_session(session.id, agent="second", cwd="/tmp")
        assert "hello" in await again.prompt("hello").text()


async def test_a_crash_in_a_turn_is_told_and_the_session_goes_on(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, session):
        with pytest.raises(AgentExited):
            await session.prompt("crash 3")
        assert "hello" in await session.prompt("hello").text()


async def _stop_reason(session: Session, text: str) -> str:
    return str((await session.prompt(text)).stop_reason)
