"""Every code block of README and guides works: it is run here, or the test that tries it is named here."""

from __future__ import annotations

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
    ("README", "sh"): "tests/distribution/test_installed.py, tests/cli",
    ("README", "text"): "a picture",
    ("agents", "sh"): "tests/cli/test_directory_config.py; a part in tests/cli",
    ("acp-extensions", "json"): "tests/docs/test_acp_extensions.py",
    ("acp-extensions", "text"): "tests/docs/test_acp_extensions.py",
    ("acp-versions", "json"): "tests/core/versions/test_updates.py",
    ("architecture", ""): "pictures",
    ("cli", ""): "tests/cli/test_docs.py",
    ("cluster", "nginx"): "tests/cluster/test_balancer.py",
    ("cluster", "text"): "a picture",
    ("cookbook-web", "python"): "tests/distribution/test_cookbook.py",
    ("cookbook-web", "ts"): "tests/distribution/test_cookbook.py",
    ("cookbook-web", "tsx"): "tests/distribution/test_cookbook.py",
    ("deploy", "caddyfile"): "nowhere: there is no caddy to try it with",
    ("deploy", "ini"): "tests/deploy/test_files.py",
    ("deploy", "nginx"): "tests/http/doors/test_http2.py",
    ("deploy", "sh"): "tests/cli/test_stdio.py; the commands for systemd nowhere",
    ("opencode", "sh"): "tests/opencode/test_terminal_ui.py",
    ("opencode", "ts"): "tests/clients/opencode/flow.mjs",
    ("deploy-docker", "dockerfile"): "tests/deploy/test_files.py",
    ("deploy-docker", "sh"): "nowhere: there is no container engine to try it with",
    ("deploy-docker", "yaml"): "tests/deploy/test_files.py",
    ("deploy-kubernetes", "sh"): "nowhere: there is no cluster to try it with",
    ("errors", "json"): "tests/docs/test_errors.py",
    ("inspector", "sh"): "tests/inspector/test_assets.py",
    ("operate", "text"): "tests/cli/test_daemon.py",
    ("performance", "sh"): "people run these",
    ("postgresql", "sh"): "tests/hub/test_postgres.py, tests/store/test_copying.py",
    ("processes", "sh"): "tests/cli/test_exec.py, tests/http/api/test_processes.py",
    ("providers", "python"): "tests/docs/test_providers_page.py",
    ("providers", "ts"): "tests/distribution/test_vendors.py",
    ("typescript-sdk", "ts"): "tests/distribution/test_npm.py",
}
"""Blocks that are not run here: by page and language, where they are tried."""
RUN = [one for one in samples("python", "bash") if (one.page, one.language) not in ELSEWHERE]
PYTHON = [one for one in samples("python") if one.page != "cookbook-web"]
"""Without those that need what only `make dist` installs, and checks there."""


def test_every_block_is_tried_somewhere() -> None:
    here = {(one.page, one.language) for one in [*RUN, *samples("toml")]}
    assert {(one.page, one.language) for one in samples()} == here | ELSEWHERE.keys()
    assert len(RUN) >= 20


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
