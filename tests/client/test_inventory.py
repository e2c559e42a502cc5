"""What a server has: its sessions and agents, and their histories."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.errors import InvalidParams, UnknownAgent, UnknownSession
from support.server import running_server


async def test_sessions_are_listed_newest_first_over_all_pages(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        made = [(await sandbox.create_session(agent="mock", cwd="/tmp")).id for _ in range(105)]
        found = await sandbox.list_sessions(agent="mock")
        assert {session.session_id for session in found} == set(made)
        assert len(await sandbox.list_sessions(limit=3)) == 3
        assert await sandbox.list_sessions(cwd="/nowhere") == []


async def test_a_session_is_found_without_naming_its_agent(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with SandboxAgent.connect(server.url) as sandbox:
            made = await sandbox.create_session(agent="mock", cwd="/tmp", session_id="mine")
            await made.prompt("hello")
        async with SandboxAgent.connect(server.url) as sandbox:
            assert (await sandbox.load_session("mine")).id == made.id
            assert (await sandbox.get_session(made.id)).id == made.id
            with pytest.raises(UnknownSession):
                await sandbox.resume_session("nothing")


async def test_history_is_read_whole_in_part_and_in_the_old_form(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        await session.prompt("chunks 2500 10")
        events = [event async for event in session.events()]
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        assert len(events) > 2500
        assert {"client", "agent"} <= {event.source for event in events}
        part = [event.sequence async for event in session.events(after=10, limit=5)]
        assert part == [11, 12, 13, 14, 15]
        old = [event async for event in session.legacy_events(limit=3)]
        assert len(old) == 3


async def test_metadata_is_merged_and_a_deleted_session_is_gone(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert await session.set_metadata(a=1, b=2) == {"a": 1, "b": 2}
        assert await session.set_metadata(a=None) == {"b": 2}
        await session.delete()
        assert session.id not in {known.session_id for known in await sandbox.list_sessions()}


async def test_conversations_are_searched_for_words(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp", title="Zebras")
        await session.prompt("echo a quick brown zebra")
        await (await sandbox.create_session(agent="mock", cwd="/tmp")).prompt("echo a slow fox")
        async with asyncio.timeout(20):
            while not (found := await sandbox.search('"brown zebra"')).is_complete:
                await asyncio.sleep(0.02)
        (only,) = found.sessions
        assert (only.session.session_id, only.session.title) == (session.id, "Zebras")
        assert {hit.kind for hit in only.hits} == {"prompt", "message", "title"}
        for hit in only.hits:
            assert "brown zebra" in hit.text
            (event,) = [event async for event in session.events(after=hit.sequence - 1, limit=1)]
            assert event.source == ("client" if hit.kind == "prompt" else "agent")
        with pytest.raises(InvalidParams, match="at least one word"):
            await sandbox.search("…")
        await session.delete()
        assert (await sandbox.search("zebra")).sessions == []


async def test_agents_are_listed_shown_and_installed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        assert "mock" in {agent["id"] for agent in await sandbox.agents.list()}
        shown = await sandbox.agents.get("mock", config=True)
        assert {model["id"] for model in shown["models"]} >= {"mock-small"}
        assert (await sandbox.agents.install("mock"))["already_installed"] is True
        with pytest.raises(UnknownAgent):
            await sandbox.agents.get("nobody")
