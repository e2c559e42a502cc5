"""Real agents, installed by our own installer into the directory that SANDBOX_AGENT_REAL_AGENTS names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox_agent.agents import Catalog
from sandbox_agent.core.ids import AgentId
from support.acp_stdio import start_stdio_agent
from support.fake_llm import FakeLLM
from support.real_agents import REAL_AGENTS, prepare_agent

CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", [pytest.param(agent, marks=pytest.mark.xdist_group(agent)) for agent in REAL_AGENTS])
async def test_a_real_agent_is_installed_answers_and_runs_a_tool(agent: str, tmp_path: Path) -> None:
    catalog = Catalog({}, data_dir=Path(os.environ["SANDBOX_AGENT_REAL_AGENTS"]), env=os.environ)
    await catalog.install(AgentId(agent))
    assert catalog.describe(AgentId(agent)).verified
    spec = await catalog.ensure(AgentId(agent))
    work = tmp_path / "work"
    work.mkdir()
    with FakeLLM() as llm:
        env = {"PATH": os.environ["PATH"], **spec.env, **prepare_agent(agent, tmp_path / "home", llm.url)}
        async with start_stdio_agent(spec.command, env=env, cwd=work) as driven:
            client = {"name": "test", "version": "1"}
            hello = {"protocolVersion": 1, "clientCapabilities": CAPABILITIES, "clientInfo": client}
            assert (await driven.request("initialize", hello))["protocolVersion"] == 1
            session = (await driven.request("session/new", {"cwd": str(work), "mcpServers": []}))["sessionId"]

            async def prompt(text: str) -> str:
                driven.text = ""
                words = [{"type": "text", "text": text}]
                answer = await driven.request("session/prompt", {"sessionId": session, "prompt": words})
                assert answer["stopReason"] == "end_turn"
                return driven.text

            assert "ECHO[hello there]" in await prompt("hello there")
            assert "TOOL_RESULT[" in await prompt("RUN:echo made > made.txt")
        assert (work / "made.txt").read_text() == "made\n"
        assert bool(driven.permissions) == (agent != "pi")  # pi never asks
