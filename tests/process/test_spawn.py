"""A program that is started without Popen has what one has that is started with it, and no more."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from sandbox_agent.process.spawn import spawn

SPAWNS = """
from sandbox_agent.process.spawn import seal, spawn
seal()
child = spawn(["/bin/sh", "-c", "echo $(ls /proc/$$/fd)"], {"PATH": "/bin:/usr/bin"}, merges=False)
print(child.stdout.read().decode())
child.wait()
"""


def test_nothing_that_was_left_open_by_others_is_inherited() -> None:
    with tempfile.TemporaryFile() as file:
        made = subprocess.run(
            [sys.executable, "-c", SPAWNS], pass_fds=(file.fileno(),), capture_output=True, text=True, check=True
        )
        assert str(file.fileno()) not in made.stdout.split()
        assert made.stdout.split()[:3] == ["0", "1", "2"]


@pytest.mark.parametrize("merges", [True, False])
def test_output_code_and_session_are_its_own(*, merges: bool) -> None:
    script = "read line || echo nothing; echo wrong >&2; ps -o sid= -p $$ 2>/dev/null || echo $$; exit 3"
    child = spawn(["/bin/sh", "-c", script], {"PATH": os.environ["PATH"]}, merges=merges)
    said = child.stdout.read().split()
    assert child.wait() == 3
    assert said[0] == b"nothing"
    assert int(said[-1]) == child.pid
    assert (b"wrong" in said) == merges
    assert (child.stderr is None) == merges
    child.stdout.close()
    if child.stderr is not None:
        assert child.stderr.read() == b"wrong\n"
        child.stderr.close()


def test_a_program_that_is_none_leaves_nothing_open() -> None:
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - numbers, not paths
    with pytest.raises(OSError, match="No such file"):
        spawn(["/nowhere/at/all"], {}, merges=False)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_signals_that_python_ignores_end_a_program() -> None:
    child = spawn(["/bin/sh", "-c", "kill -PIPE $$; echo lives"], {}, merges=True)
    assert child.stdout.read() == b""
    assert child.wait() == -13
    child.stdout.close()
