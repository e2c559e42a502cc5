from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sandbox_agent.agents.surroundings import survey


@pytest.mark.parametrize("place", [".pyenv/versions/3.13.0/bin", ".local/share/uv/python/cpython-3.13.0/bin"])
async def test_a_python_that_is_here_but_not_on_path_is_found(tmp_path: Path, place: str) -> None:
    shims = tmp_path / "shims"
    for folder, says in ((tmp_path / place, "echo Python 3.13.0"), (shims, "echo no version is set >&2; exit 127")):
        folder.mkdir(parents=True)
        program = folder / "python3.13"
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(0o755)
    machine = await survey({"PATH": f"{shims}:/usr/bin:/bin", "HOME": str(tmp_path)})
    found = {tool.path: tool.version for tool in machine.pythons}
    assert found[str(tmp_path / place / "python3.13")] == (3, 13, 0)
    assert not any(path.startswith(str(shims)) for path in found)
    assert machine.pythons[0].path == sys.executable
