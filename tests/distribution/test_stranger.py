"""A stranger's path: from a fresh clone to the first streamed turn of a real agent, by the README's commands alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.dist import ROOT
from support.fake_llm import FakeLLM
from support.real_agents import prepare_agent

pytestmark = [
    pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads"),
    pytest.mark.skipif(shutil.which("npm") is None and os.environ.get("REQUIRE_ALL") != "1", reason="needs npm"),
    pytest.mark.timeout(400),
]
LIMIT = 120.0
"""Seconds, downloads included, on a machine that nobody else uses. Where others do, it takes as much longer."""
README = (ROOT / "README.md").read_text()


def test_from_nothing_to_the_first_streamed_turn_of_a_real_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shown,) = re.findall(r'^sandbox-agent run --agent claude "([^"]+)"', README, re.MULTILINE)
    assert re.search(r"^make install  ", README, re.MULTILINE)
    steps: dict[str, float] = {}
    with FakeLLM() as llm:
        home = tmp_path / "home"
        strange = ("PYTHON", "SANDBOX_AGENT", "ANTHROPIC", "CLAUDE", "XDG_", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        env = {**kept, **prepare_agent("claude", home, llm.url)}
        if (registry := Path.home() / ".npmrc").exists():  # where packages come from on this machine
            shutil.copy(registry, home)
        started = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", ROOT, tmp_path / "clone"], check=True, timeout=60)
        steps["git clone"] = time.monotonic() - started
        _do(["make", "install", f"PYTHON={sys.executable}"], env, tmp_path / "clone")
        steps["make install"] = time.monotonic() - started
        command = [home / ".local/bin/sandbox-agent", "run", "--agent", "claude", shown]
        running = subprocess.Popen(command, env=env, cwd=tmp_path / "clone", stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        with running, running.stdout:
            first = ""
            while not first and (line := running.stdout.readline()):
                first = line.strip()
            steps["the first words of the answer"] = time.monotonic() - started
            rest = running.stdout.read()
            assert running.wait(timeout=60) == 0, rest
        assert shown in first + rest, "the scripted model says the prompt again"
    crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    with capsys.disabled():
        sys.stdout.write("\n" + "".join(f"{taken:6.1f} s  {step}\n" for step, taken in steps.items()))
        sys.stdout.write(f"the load was {crowd:.1f} times what the processors can take\n")
    assert steps["the first words of the answer"] < LIMIT * crowd


def _do(command: list[str], env: dict[str, str], cwd: Path) -> None:
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
