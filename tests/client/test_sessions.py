"""Sessions: make, load, resume, fork, configure, watch."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.client import Session, text_of
from sandbox_agent.errors import InvalidParams, RequestFailed, UnknownSession
from support.server import mock_agents, running_server


async def test_load_brings_the_conversation_and_the_session_goes_on(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with SandboxAgent.connect(server.url) as sandbox:
            session = await sandbox.create_session(agent="mock", cwd="/tmp")
            await session.prompt("remember me")
        async with SandboxAgent.connect(server.url) as sandbox:
            loaded = await sandbox.load_session(session.id, agent="mock")
            assert "remember me" in "".join(map(text_of, loaded.replay))
            assert loaded.cwd == "/tmp"
            assert await loaded.prompt("recall").text() == "1. remember me"


async def test_an_agent_of_version_2_of_acp_is_used_as_any_other(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=mock_agents(two="--protocol 2")) as server:
        async with SandboxAgent.connect(server.url) as sandbox:
            session = await sandbox.create_session(agent="two", cwd="/tmp", model="mock-large")
            assert await session.prompt("remember me").text() == "remember me"
            assert (await sandbox.agents.get("two"))["serverStatus"]["protocolVersion"] == 2
        async with SandboxAgent.connect(server.url) as sandbox:
            loaded = await sandbox.load_session(session.id, agent="two")
            assert "remember me" in "".join(map(text_of, loaded.replay))
            assert await loaded.prompt("recall").text() == "1. remember me"


async def test_resume_brings_no_conversation(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with SandboxAgent.connect(server.url) as sandbox:
            session = await sandbox.create_session(agent="mock", cwd="/tmp")
            await session.prompt("remember me")
        async with SandboxAgent.connect(server.url) as sandbox:
            resumed = await sandbox.resume_session(session.id, agent="mock")
            assert resumed.replay == []
            assert await resumed.prompt("recall").text() == "1. remember me"


async def test_an_alias_stands_for_the_session_id(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with SandboxAgent.connect(server.url) as sandbox:
            made = await sandbox.create_session(agent="mock", cwd="/tmp", session_id="mine", title="A title")
            assert made.alias == "mine"
        async with SandboxAgent.connect(server.url) as sandbox:
            session = await sandbox.resume_session("mine", agent="mock")
            assert session.id == made.id
            assert await session.prompt("hello").text() == "hello"
            assert (await session.describe())["title"] == "A title"


async def test_an_unknown_session_is_said(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        with pytest.raises((UnknownSession, RequestFailed), match="nothing-here"):
            await sandbox.resume_session("nothing-here", agent="mock")


async def test_wishes_that_do_not_exist_are_named(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        with pytest.raises(InvalidParams, match="colour"):
            await sandbox.create_session(agent="mock", colour="red")  # type: ignore[call-arg]


async def test_model_mode_and_options_are_set(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp", model="mock-large")
        assert {model["id"] for model in await session.list_models()} == {"mock-small", "mock-large"}
        await session.set_model("mock-small")
        await session.set_mode("code")
        options = await session.set_config_option("effort", "high")
    current = {option["id"]: option["currentValue"] for option in options}
    assert current == {"model": "mock-small", "mode": "code", "effort": "high"}


async def test_a_second_program_sees_what_the_first_does(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url) as driver,
        SandboxAgent.connect(server.url) as watcher,
    ):
        session = await driver.create_session(agent="mock", cwd="/tmp")
        watched = await watcher.resume_session(session.id, agent="mock")
        said = asyncio.create_task(_heard(watched, "third"))
        for prompt in ("first", "second", "third"):
            await session.prompt(prompt)
        async with asyncio.timeout(30):
            assert await said == "firstsecondthird"


async def test_a_watch_ends_with_the_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        watching = asyncio.create_task(_heard(session, "never said"))
        await session.prompt("hello")
        await session.terminate()
        async with asyncio.timeout(30):
            assert await watching == "hello"


async def test_a_fork_begins_where_the_session_was(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        await session.prompt("one")
        fork = await session.fork()
        assert fork.id != session.id
        await fork.prompt("two")
        assert await fork.prompt("recall").text() == "1. one\n2. two"
        assert await session.prompt("recall").text() == "1. one"


async def test_a_detached_session_goes_on_without_us(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        await session.prompt("one")
        await session.detach()
        again = await sandbox.resume_session(session.id, agent="mock")
        assert await again.prompt("recall").text() == "1. one"


async def _heard(session: Session, last: str) -> str:
    said = ""
    async for update in session.updates():
        said += text_of(update)
        if said.endswith(last):
            break
    return said
