"""A server of our own: started, protected, stopped with the context."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.errors import ConfigError, RequestFailed


async def test_it_runs_with_a_random_token_and_is_gone_after_the_block(tmp_path: Path) -> None:
    async with SandboxAgent.start(data_dir=tmp_path / "data", env=_home(tmp_path)) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert await session.prompt("hello").text() == "hello"
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{sandbox.url}/v1/sessions")).status_code == 401
        assert sandbox.token
        assert len(sandbox.token) >= 32
        pid = _pid(sandbox)
    assert not Path(f"/proc/{pid}").exists()


async def test_it_is_stopped_when_the_block_fails(tmp_path: Path) -> None:
    pid = 0

    async def fail() -> None:
        nonlocal pid
        async with SandboxAgent.start(data_dir=tmp_path / "data", env=_home(tmp_path)) as sandbox:
            pid = _pid(sandbox)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await fail()
    assert not Path(f"/proc/{pid}").exists()


async def test_sessions_are_there_again_the_next_time(tmp_path: Path) -> None:
    for prompt, expected in (("one", "one"), ("recall", "1. one")):
        async with SandboxAgent.start(data_dir=tmp_path / "data", env=_home(tmp_path)) as sandbox:
            known = await sandbox.list_sessions()
            session = (
                await sandbox.resume_session(known[0].session_id)
                if known
                else await sandbox.create_session(agent="mock", cwd="/tmp")
            )
            assert await session.prompt(prompt).text() == expected


async def test_what_the_server_says_when_it_does_not_start_is_raised(tmp_path: Path) -> None:
    sandbox = SandboxAgent.start(data_dir=tmp_path / "data", config=tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        await sandbox.__aenter__()


def _pid(sandbox: SandboxAgent) -> int:
    assert sandbox._machine is not None
    assert sandbox._machine.pid is not None
    return sandbox._machine.pid


def _home(home: Path) -> dict[str, str]:
    return {"SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state"), "HOME": str(home)}


@pytest.mark.promise("P-sdk-5")
async def test_a_second_server_on_the_data_directory_has_a_history_of_its_own(tmp_path: Path) -> None:
    async with (
        SandboxAgent.start(data_dir=tmp_path / "data", env=_home(tmp_path)) as first,
        SandboxAgent.start(data_dir=tmp_path / "data", env=_home(tmp_path)) as second,
    ):
        for sandbox in (first, second):
            session = await sandbox.create_session(agent="mock", cwd="/tmp", title=sandbox.url)
            assert await session.prompt("hello").text() == "hello"
            assert [known.title for known in await sandbox.list_sessions()] == [sandbox.url]
        assert (await first.health())["store"]["kind"] == "sqlite"
        kept = (await second.health())["store"]
        assert kept["kind"] == "memory"
        assert "another one (pid" in kept["problem"]


async def test_a_store_that_was_asked_for_is_not_replaced(tmp_path: Path) -> None:
    wanted = {**_home(tmp_path), "SANDBOX_AGENT_STORE": "sqlite"}
    async with SandboxAgent.start(data_dir=tmp_path / "data", env=wanted):
        with pytest.raises(ConfigError, match="in use by another server"):
            await SandboxAgent.start(data_dir=tmp_path / "data", env=wanted).__aenter__()


async def test_an_agent_is_logged_in_by_the_program(tmp_path: Path) -> None:
    config = tmp_path / "agents.toml"
    config.write_text(
        f'[agents.locked]\ncommand = ["{sys.executable}", "-m", "sandbox_agent.mock_agent", "--needs-auth"]\n'
    )
    async with SandboxAgent.start(data_dir=tmp_path / "data", config=config, env=_home(tmp_path)) as sandbox:
        with pytest.raises(RequestFailed, match="call authenticate with methodId mock-login"):
            await sandbox.create_session(agent="locked", cwd="/tmp")
        (method,) = await sandbox.auth_methods("locked")
        await sandbox.authenticate("locked", method["id"])
        assert await (await sandbox.create_session(agent="locked", cwd="/tmp")).prompt("hello").text() == "hello"
