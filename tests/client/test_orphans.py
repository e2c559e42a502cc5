"""A server that a program started for itself ends with that program, whatever kills it, and its agents with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command import COMMAND, Shell
from support.proc_table import processes_at_home
from support.waiting import until

pytestmark = pytest.mark.timeout(120)
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]

ASYNC_PROGRAM = """
import asyncio
from sandbox_agent import SandboxAgent

async def main():
    async with SandboxAgent.start() as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        async for update in session.prompt("say running; hang"):
            print("running", flush=True)

asyncio.run(main())
"""
KERNEL = """
import sys
from sandbox_agent import BlockingSandboxAgent

def cell():
    global sandbox, session
    sandbox = BlockingSandboxAgent.start().__enter__()
    session = sandbox.create_session(agent="mock", cwd="/tmp")
    for update in session.prompt("hello"):
        pass

cell()
print("running", flush=True)
sys.stdin.read()  # the next cell never comes
"""
FORKING_PROGRAM = """
import asyncio, os, time
from sandbox_agent import SandboxAgent

async def main():
    async with SandboxAgent.start() as sandbox:
        await sandbox.create_session(agent="mock", cwd="/tmp")
        child = os.fork()
        if child == 0:
            time.sleep(100)  # holds a copy of everything that its parent has open
        print("running", child, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.promise("P-sdk-4")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param([str(COMMAND), "run", "--agent", "mock", "say running; hang"], id="run"),
        pytest.param([sys.executable, "-c", ASYNC_PROGRAM], id="start"),
        pytest.param([sys.executable, "-c", KERNEL], id="notebook"),
    ],
)
async def test_nothing_is_left_of_a_program_that_was_killed(
    tmp_path: Path, command: list[str], number: signal.Signals
) -> None:
    shell = Shell(tmp_path)
    with _started(command, shell) as program:
        _ready(program)
        assert len(processes_at_home(tmp_path)) >= 3  # the program, its server, the agent
        program.send_signal(number)
        program.wait(timeout=30)
    await until(lambda: processes_at_home(tmp_path) == [])


async def test_a_copy_of_the_pipe_in_a_forked_child_keeps_no_server_alive(tmp_path: Path) -> None:
    with _started([sys.executable, "-c", FORKING_PROGRAM], Shell(tmp_path)) as program:
        child = int(_ready(program).split()[1])
        try:
            program.kill()
            program.wait(timeout=30)
            await until(lambda: processes_at_home(tmp_path) == [child])
        finally:
            os.kill(child, signal.SIGKILL)


@contextmanager
def _started(command: list[str], shell: Shell) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(
        command,
        env=shell.env,
        cwd=shell.home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 - the tests may be run with nohup
    )
    try:
        yield program
    finally:
        program.kill()
        program.wait(timeout=30)
        for pipe in (program.stdin, program.stdout):
            if pipe is not None:
                pipe.close()


def _ready(program: subprocess.Popen[str]) -> str:
    """The line by which it says that its agent runs."""
    assert program.stdout is not None
    for line in program.stdout:
        if "running" in line:
            return line
    raise AssertionError("it ended")
