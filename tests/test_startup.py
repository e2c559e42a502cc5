"""What the server may not load when it starts: it would cost most of a second."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys
from sandbox_agent.cli import main
from sandbox_agent import serve, settings
print(" ".join(name for name in sys.modules if name.partition(".")[0] in {heavy!r}))
"""


@pytest.mark.parametrize("heavy", ["acp", "pydantic"])
def test_the_servers_start_up_does_not_import(heavy: str) -> None:
    program = _PROGRAM.replace("{heavy!r}", repr({heavy}))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
