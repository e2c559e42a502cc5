"""Start-up stays quick: what is slow to import is imported when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("acp", "httpx", "pydantic", "rich", "uvicorn", "asyncio")


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import sandbox_agent", SLOW),
        ("from sandbox_agent.cli.main import cli; cli(['--help'], standalone_mode=False)", SLOW),
        ("from sandbox_agent import SandboxAgent", ("acp", "pydantic", "uvicorn")),
        ("from sandbox_agent.cli.main import cli; cli(['run', '--help'], standalone_mode=False)", ("acp", "pydantic")),
    ],
)
def test_slow_modules_are_not_imported_by(program: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys\n{program}\nfound = [m for m in {heavy!r} if m in sys.modules]\nassert not found, found"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
