"""Real agents in a new home, as people first use them: a key in the environment of the server and nothing else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from support.fake_llm import FakeLLM
from support.real_world import DEADLINE, install_real, real_cache, reply_to
from support.rpc import RpcClient, connected
from support.server import running_server

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]
NEW = {"cwd": "/tmp", "mcpServers": []}


@pytest.fixture(autouse=True)
def _row() -> None:
    """No row of the matrix."""


@asynccontextmanager
async def first_use(agent: str, home: Path, **env: str) -> AsyncIterator[RpcClient]:
    """A client of a server that has the agent, in a home where the agent was never used."""
    await install_real(agent)
    (home / "data").mkdir(parents=True)
    (home / "data" / "agents").symlink_to(real_cache() / "agents")
    async with (
        running_server(home, "--no-token", env={"SANDBOX_AGENT_REQUIRE_PREINSTALL": "1", **env}) as server,
        connected(server.url, agent, deadline=DEADLINE) as client,
    ):
        yield client


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "CODEX_API_KEY"])
async def test_codex_is_logged_in_by_the_key_that_is_set(tmp_path: Path, llm: FakeLLM, variable: str) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(f'openai_base_url = "{llm.url}/v1"\n')  # as docs/logins.md says
    async with first_use("codex", tmp_path, **{variable: "sk-loopback"}) as client, client.stream() as events:
        session = (await client.call("session/new", NEW))["sessionId"]
        assert "loopback model" in await reply_to(client, events, session, "hello")


async def test_codex_without_a_key_says_which_and_how_to_log_in(tmp_path: Path) -> None:
    async with first_use("codex", tmp_path) as client:
        error = (await client.request("session/new", NEW))["error"]
        assert error["code"] == -32000
        assert "set OPENAI_API_KEY or CODEX_API_KEY in the environment of the server" in error["data"]["hint"]
        assert "run `sandbox-agent login codex`" in error["data"]["hint"]


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
@pytest.mark.parametrize("is_sandbox", ["", "1"])
async def test_claude_runs_as_root(tmp_path: Path, llm: FakeLLM, is_sandbox: str) -> None:
    async with _claude(tmp_path, llm, is_sandbox) as client, client.stream() as events:
        made = await client.call("session/new", NEW)
        offered = {mode["id"] for mode in made["modes"]["availableModes"]}
        assert ("bypassPermissions" in offered) is (is_sandbox == "1")
        assert "loopback model" in await reply_to(client, events, made["sessionId"], "hello")


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
async def test_what_claude_refuses_as_root_is_told_with_what_helps(tmp_path: Path, llm: FakeLLM) -> None:
    async with _claude(tmp_path, llm, "yes") as client:  # its adapter takes that for true, Claude Code does not
        error = (await client.request("session/new", NEW))["error"]
        assert "root" in error["data"]["details"]
        assert "IS_SANDBOX=1" in error["data"]["hint"]


def _claude(home: Path, llm: FakeLLM, is_sandbox: str) -> AbstractAsyncContextManager[RpcClient]:
    keys = {"ANTHROPIC_BASE_URL": llm.url, "ANTHROPIC_API_KEY": "sk-ant-loopback", "DISABLE_AUTOUPDATER": "1"}
    return first_use("claude", home, **keys, IS_SANDBOX=is_sandbox)
