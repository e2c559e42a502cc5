"""The TypeScript packages' own checks and tests, run against this checkout's server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.browser import ROOT, find_tool, missing

pytestmark = pytest.mark.timeout(600)

SDK = ROOT / "sdks" / "typescript"
INSPECTOR = ROOT / "inspector"


def _run(folder: Path, script: str) -> None:
    npm = find_tool("npm")
    if not (folder / "node_modules").is_dir():
        missing(f"run npm ci in {folder.relative_to(ROOT)}/")
    server = Path(sys.executable).parent / "sandbox-agent"
    env = {**os.environ, "SANDBOX_AGENT_BIN": str(server), "CI": "1", "NO_COLOR": "1"}
    done = subprocess.run([npm, "run", "-s", script], cwd=folder, env=env, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, f"npm run {script}\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"


@pytest.mark.promise("P-sdk-6")
@pytest.mark.parametrize("script", ["check", "api:check", "build", "test"])
def test_the_sdk_passes(script: str) -> None:
    _run(SDK, script)


@pytest.mark.parametrize("script", ["check", "test"])
def test_the_inspector_passes(script: str) -> None:
    _run(INSPECTOR, script)


@pytest.mark.parametrize("folder", [SDK, INSPECTOR])
def test_lock_files_name_no_registry(folder: Path) -> None:
    assert '"resolved"' not in (folder / "package-lock.json").read_text()
