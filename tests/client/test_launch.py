"""A server of our own: started, protected, stopped with the context."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.errors import ConfigError


async def test_it_runs_with_a_random_token_and_is_gone_after_the_block(tmp_path: Path) -> None:
    async with SandboxAgent.start(data_dir=tmp_path / "data", env=_home(tmp_path)) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert await session.prompt("hello").text() == "hello"
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{sandbox.url}/v1/sessions")).status_code == 401
        assert sandbox.token
        assert len(sandbox.token) >= 32
        pid = sandbox._server.pid if sandbox._server is not None else 0
    assert not Path(f"/proc/{pid}").exists()


async def test_it_is_stopped_when_the_block_fails(tmp_path: Path) -> None:
    pid = 0

    async def fail() -> None:
        nonlocal pid
        async with SandboxAgent.start(data_dir=tmp_path / "data", env=_home(tmp_path)) as sandbox:
            pid = sandbox._server.pid if sandbox._server is not None else 0
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


def _home(home: Path) -> dict[str, str]:
    return {"SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state"), "HOME": str(home)}
