from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from sandbox_agent.process import Child, ExitStatus
from support.processes import ENV, gone, members

DEADLINE = 30.0


async def ended(child: Child) -> ExitStatus:
    async with asyncio.timeout(DEADLINE):
        status = await child.exited()
        await child.last_output()
        await child.end()
    return status


async def test_output_comes_whole_and_ends_before_the_child_does() -> None:
    said, ends = bytearray(), []
    child = Child.launch(["sh", "-c", "head -c 3000000 /dev/zero; echo end >&2"], env=ENV)
    await child.pump(child.stdout, said.extend, lambda: ends.append(len(said)))
    assert await ended(child) == ExitStatus(0)
    assert said == bytes(3_000_000) + b"end\n"
    assert ends == [len(said)]


async def test_a_signal_is_told_apart_from_a_code_that_looks_like_one() -> None:
    killed = Child.launch(["sleep", "300"], env=ENV)
    killed.signal_group(signal.SIGKILL)
    assert await ended(killed) == ExitStatus(137, "SIGKILL")
    assert await ended(Child.launch(["sh", "-c", "exit 137"], env=ENV)) == ExitStatus(137)


async def test_what_a_child_leaves_in_its_group_lives_until_its_end_and_no_longer() -> None:
    child = Child.launch(["sh", "-c", "sleep 300 & exit 3"], env=ENV)
    async with asyncio.timeout(DEADLINE):
        assert (await child.exited()).code == 3
    assert members(child.pid)
    await child.end()
    await gone(child.pid)


async def test_a_child_is_reaped_by_its_end_and_may_be_ended_again() -> None:
    child = Child.launch([sys.executable, "-c", ""], env=ENV)
    await ended(child)
    await child.end()
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, os.WNOHANG)


async def test_stop_is_bounded_for_a_child_that_ignores_term(tmp_path: Path) -> None:
    child = Child.launch(["sh", "-c", "trap '' TERM; touch ready; while :; do sleep 1; done"], env=ENV, cwd=tmp_path)
    async with asyncio.timeout(DEADLINE):
        while not (tmp_path / "ready").exists():
            await asyncio.sleep(0.01)
        await child.stop(grace=0.1)
    assert (await ended(child)).signal == "SIGKILL"
