"""Claude Code and Codex in OpenCode's terminal UI, with the scripted model on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from support.fake_llm import FakeLLM
from support.opencode_program import opencode_environment
from support.real_agents import prepare_agent
from support.real_world import install_real, real_cache
from support.served import served
from support.server import Server
from support.terminal_ui import terminal_ui
from support.tmux import needs_tmux

pytestmark = needs_tmux


@contextmanager
def serving(agent: str, llm: FakeLLM, root: Path) -> Iterator[Server]:
    """A server with one real agent, which has the loopback model alone."""
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(asyncio.run, install_real(agent)).result()
    data = root / "server" / "data"
    data.mkdir(parents=True)
    (data / "agents").symlink_to(real_cache() / "agents")
    env = prepare_agent(agent, root / "home", llm.url)
    lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in env.items()]
    config = "\n".join([f"[agents.{agent}.env]", *lines, ""])
    nowhere = {"SANDBOX_AGENT_ACP_REGISTRY_URL": "http://127.0.0.1:9/", "SANDBOX_AGENT_REQUIRE_PREINSTALL": "1"}
    with served(root / "server", "--no-token", config=config, env=nowhere) as server:
        yield server


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_real_agent_streams_asks_and_is_interrupted(program: Path, llm: FakeLLM, agent: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with serving(agent, llm, tmp_path) as server:
        command = [str(program), "attach", f"{server.url}/opencode/agents/{agent}", "--dir", str(work)]
        with terminal_ui(command, opencode_environment(tmp_path / "ui"), work) as screen:
            screen.until(lambda shown: "Build" in shown and "Ask anything" in shown, "the start page")
            screen.say("zebra SLOW:12")
            screen.wait_for("slow0")
            screen.wait_for("slow11")

            made = work / "made"
            screen.say(f"RUN:touch {made}")
            screen.wait_for("Allow once")
            assert not made.exists()
            screen.keys("Enter")
            screen.until(lambda shown: made.exists() and "Permission required" not in shown, "the tool's end")

            refused = work / "refused"
            screen.say(f"RUN:touch {refused}")
            screen.wait_for("Allow once")
            screen.keys("Right", "Right", "Enter")
            screen.until(lambda shown: "Allow once" not in shown, "the end of the question")
            screen.until(lambda shown: "esc interrupt" not in shown, "the end of the turn")
            assert not refused.exists()

            screen.say("giraffe SLOW")
            screen.wait_for("slow1")
            screen.interrupt()
