"""Every code block of README and guides works: it is run here, or the test that tries it is named here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox_agent.agents import Catalog
from sandbox_agent.cli.project import find_project
from sandbox_agent.settings import load_settings
from support.command import Shell, serving
from support.samples import ROOT, Sample, samples

pytestmark = pytest.mark.timeout(180)  # a sample may start several servers, one after the other

ELSEWHERE = {
    ("README", "bash"): "tests/test_readme.py",
    ("README", "text"): "a picture",
    ("acp-extensions", "json"): "tests/docs/test_acp_extensions.py",
    ("acp-extensions", "text"): "tests/docs/test_acp_extensions.py",
    ("acp-versions", "json"): "tests/core/versions/test_updates.py",
    ("architecture", ""): "pictures",
    ("cli", ""): "tests/cli/test_docs.py",
    ("clients", "json"): "tests/docs/test_clients_page.py",
    ("cluster", "nginx"): "tests/cluster/test_balancer.py",
    ("cluster", "text"): "a picture",
    ("cookbook-web", "python"): "tests/distribution/test_cookbook.py",
    ("cookbook-web", "ts"): "tests/distribution/test_cookbook.py",
    ("cookbook-web", "tsx"): "tests/distribution/test_cookbook.py",
    ("deploy", "caddyfile"): "tests/deploy/test_files.py",
    ("deploy", "ini"): "tests/deploy/test_files.py",
    ("deploy", "nginx"): "tests/http/doors/test_http2.py",
    ("deploy-docker", "dockerfile"): "tests/deploy/test_files.py, tests/deploy/test_image.py",
    ("deploy-docker", "yaml"): "tests/deploy/test_files.py",
    ("errors", "json"): "tests/docs/test_errors.py",
    ("opencode", "ts"): "tests/clients/opencode/flow.mjs",
    ("operate", "text"): "tests/cli/test_daemon.py",
    ("providers", "python"): "tests/docs/test_providers_page.py",
    ("providers", "ts"): "tests/distribution/test_vendors.py",
    ("typescript-sdk", "ts"): "tests/distribution/test_npm.py",
}
"""Blocks that are not run here: by page and language, where all of them are tried."""
SHELL = {
    ("README", "make demo "): "tests/distribution/test_installed.py",
    ("README", "make install "): "tests/distribution/test_installed.py, tests/distribution/test_stranger.py",
    ("README", "pipx install dist/"): "tests/distribution/test_installed.py",
    ("README", "sandbox-agent run --agent mock"): "tests/cli/test_run.py, tests/distribution/test_stranger.py",
    ("clients", "sandbox-agent stdio "): "tests/cli/test_stdio.py",
    ("deploy", "sudo make install "): "tests/deploy/test_files.py, as far as it needs no systemd",
    ("deploy-docker", "make dist && docker build "): "tests/deploy/test_image.py, as far as it needs no engine",
    ("deploy-kubernetes", "export SANDBOX_AGENT_TOKEN="): "tests/deploy/test_files.py, as far as it needs no cluster",
    ("inspector", "cd inspector"): "tests/inspector/test_assets.py",
    ("opencode", "sandbox-agent opencode "): "tests/opencode/test_terminal_ui.py",
    ("opencode", "opencode attach "): "tests/opencode/test_terminal_ui.py",
    ("opencode", "sandbox-agent server "): "tests/opencode/test_web_ui.py",
    ("performance", "make bench "): "people run these",
    ("postgresql", "pip install "): "tests/hub/test_postgres.py",
    ("postgresql", "sandbox-agent store copy "): "tests/store/test_copying.py",
    ("typescript-sdk", "npm install "): "tests/distribution/test_npm.py",
}
"""Blocks for a shell that need what is not on every machine: by page and how they begin, where they are tried."""
RUN = [one for one in samples("python", "bash") if (one.page, one.language) not in ELSEWHERE]
PYTHON = [one for one in samples("python") if one.page != "cookbook-web"]
"""Without those that need what only `make dist` installs, and checks there."""


def test_every_block_is_tried_somewhere() -> None:
    here = {(one.page, one.language) for one in [*RUN, *samples("toml")]}
    left = [
        one for one in samples() if one.language != "sh" and (one.page, one.language) not in here | ELSEWHERE.keys()
    ]
    assert left == []
    assert len(RUN) >= 20


def test_every_block_for_a_shell_is_tried_somewhere() -> None:
    shown = [(one.page, one.text) for one in samples("sh")]
    listed = {key: [text for page, text in shown if page == key[0] and text.startswith(key[1])] for key in SHELL}
    assert {key for key, texts in listed.items() if len(texts) != 1} == set()
    assert len(shown) == len(SHELL)


def test_what_is_named_exists() -> None:
    named = {name for where in [*ELSEWHERE.values(), *SHELL.values()] for name in re.findall(r"tests/[\w/.]+", where)}
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("sample", RUN, ids=lambda sample: sample.name)
def test_it_runs(sample: Sample, tmp_path: Path) -> None:
    if "SANDBOX_AGENT_ENDPOINT" in sample.text:
        with serving(tmp_path / "served") as served:
            _run(served, sample, tmp_path)
    else:
        _run(Shell(tmp_path), sample, tmp_path)


def _run(shell: Shell, sample: Sample, cwd: Path) -> None:
    body = sample.text.replace("daemon start", "daemon start --port 0")  # the default port may be in use
    file = cwd / f"sample.{sample.language}"
    file.write_text(body)
    program = [sys.executable, "-W", "error"] if sample.language == "python" else ["bash", "-eu"]
    try:
        done = subprocess.run([*program, file], env=shell.env, cwd=cwd, capture_output=True, text=True, timeout=170)
    finally:
        if "daemon start" in body:  # a sample that fails does not come to its `daemon stop`
            shell.run("daemon", "stop")
    assert done.returncode == 0, f"{body}\n{done.stdout}\n{done.stderr}"
    assert done.stdout or "print" not in body


def test_python_is_typed_as_mypy_strict_wants_it(tmp_path: Path) -> None:
    files = [tmp_path / f"{one.name.replace('-', '_')}.py" for one in PYTHON]
    for one, file in zip(PYTHON, files, strict=True):
        file.write_text(one.text)
    cache = ["--cache-dir", str(ROOT / ".mypy_cache" / "samples")]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *cache, *map(str, files)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("sample", samples("toml"), ids=lambda sample: sample.name)
def test_config_files_are_valid(sample: Sample, tmp_path: Path) -> None:
    file = tmp_path / "sandbox-agent.toml"
    file.write_text(sample.text)
    if sample.page == "project-file":
        assert find_project(tmp_path) is not None
        return
    settings = load_settings({}, file, {})
    catalog = Catalog(settings.agents, data_dir=tmp_path, env={})
    assert settings.agents
    assert set(settings.agents) <= set(catalog.ids())
