"""The conformance check with every real agent that a scripted model can drive; docs/agents.md has its table."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from sandbox_agent.agents import Catalog, CustomAgent
from sandbox_agent.core.ids import AgentId
from sandbox_agent.files import FileService
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.conformance.checks import Conformance, Finding, Subject
from sandbox_agent.process import child_environment
from support.fake_llm import FakeLLM
from support.limits import file_limits, processes_under
from support.real_agents import CHECKED_AGENTS, REAL_AGENTS, prepare_agent
from support.real_world import install_real, real_cache

KNOWN: dict[tuple[str, str], str] = {
    ("droid", "sessions apart"): "note",
    ("droid", "cancel"): "note",
    ("goose", "cancel"): "note",
    ("pi", "permission asked"): "note",
    ("pi", "permission rejected"): "skipped",
    ("pi", "cancel while asking"): "skipped",
    ("grok", "permission asked"): "note",
    ("grok", "permission rejected"): "skipped",
    ("grok", "cancel while asking"): "skipped",
    ("vibe", "prompt not echoed"): "note",
}
"""Where an agent is not as one would wish; everything else must be ok."""
EITHER = {
    ("gemini", "resumes after a kill"),  # ok where a minute ends between new and load: files are named by the minute
    ("fast-agent", "sessions apart"),  # mixes sessions up in some turns only
}
"""What is found depends on chance."""
WANTED = CHECKED_AGENTS if os.environ.get("FULL") == "1" else REAL_AGENTS


@pytest.mark.timeout(900)
@pytest.mark.parametrize("agent", [pytest.param(agent, marks=pytest.mark.xdist_group(agent)) for agent in WANTED])
async def test_a_real_agent_behaves_as_the_table_says(
    agent: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    await install_real(agent)
    work = tmp_path / "work"
    work.mkdir()
    with FakeLLM() as llm:
        env = prepare_agent(agent, tmp_path / "home", llm.url)
        catalog = Catalog({agent: CustomAgent(env=env)}, data_dir=real_cache(), env=os.environ)
        launch = msgspec.structs.replace(await catalog.ensure(AgentId(agent)), cwd=work)
        files = FileService((), work, file_limits(), data_dir=None)
        host = Host(env, files, processes_under(tmp_path, env, files))
        surroundings = child_environment(os.environ, extra=launch.env, passthrough=launch.env_passthrough)
        isolation = catalog.isolation(AgentId(agent))
        try:
            findings = await Conformance(Subject(launch, surroundings, host, work, 90.0, isolation))()
        finally:
            await host.close()
    version = catalog.describe(AgentId(agent)).version
    record_property("checked", [agent, version, isolation, [[f.check, f.verdict, f.detail] for f in findings]])
    wanting = {(agent, f.check): f.verdict for f in findings if f.verdict != "ok" and (agent, f.check) not in EITHER}
    assert wanting == _known(agent), _told(findings)


def _known(agent: str) -> dict[tuple[str, str], str]:
    return {key: verdict for key, verdict in KNOWN.items() if key[0] == agent}


def _told(findings: list[Finding]) -> str:
    return "\n".join(f"{finding.check}: {finding.verdict}, {finding.detail}" for finding in findings)
