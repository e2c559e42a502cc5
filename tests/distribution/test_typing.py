"""The types of the installed package, as another checker than ours sees them in the programs of the guides."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.samples import samples

pytestmark = [
    pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads"),
    pytest.mark.skipif(shutil.which("npm") is None and os.environ.get("REQUIRE_ALL") != "1", reason="needs npm"),
    pytest.mark.timeout(400),
]
PYRIGHT = "pyright@1.1.414"
NEEDS_MORE = {"cookbook-web", "providers"}
"""Pages whose programs import packages of others."""


def test_the_programs_of_the_guides_are_strict_for_pyright_too(wheel: Path, tmp_path: Path) -> None:
    programs = [one for one in samples("python") if one.page not in NEEDS_MORE]
    (tmp_path / "programs").mkdir()
    for one in programs:
        (tmp_path / "programs" / f"{one.name.replace('-', '_')}.py").write_text(one.text)
    options = {"include": ["programs"], "typeCheckingMode": "strict", "venvPath": ".", "venv": "venv"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options))
    (tmp_path / "package.json").write_text('{"private": true}')
    _run(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    _run("venv/bin/python", "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    _run("npm", "install", "--loglevel=error", "--no-audit", "--no-fund", PYRIGHT, cwd=tmp_path)
    assert f"Found {len(programs)} source file" in _run("npx", "pyright", "--verbose", cwd=tmp_path)


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
