"""What the TypeScript SDK takes from the server's tables is what the tables say."""

from __future__ import annotations

import subprocess
import sys

from support.browser import ROOT


def test_the_table_of_what_may_be_repeated_is_that_of_core() -> None:
    script = ROOT / "sdks" / "typescript" / "scripts" / "methods.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
