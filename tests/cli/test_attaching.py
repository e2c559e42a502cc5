"""What is read from our input while the program ends: it goes nowhere, and nobody hears of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import asyncio, threading
from sandbox_agent.cli.attaching import _read_stdin

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60  # how slow the machine is does not matter
    begun = asyncio.Event()
    async def give(piece):
        begun.set()
        {giving}
        return True
    _read_stdin(give)
    await begun.wait()

asyncio.run(main())
for thread in threading.enumerate():
    if thread.name == "stdin":
        thread.join(1)
"""


@pytest.mark.parametrize("giving", ["await asyncio.sleep(60)", "raise ConnectionResetError", "await asyncio.sleep(0)"])
def test_a_piece_that_is_still_on_its_way_at_the_end_leaves_no_traceback(giving: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", _PROGRAM.format(giving=giving)],
        input=b"typed",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
