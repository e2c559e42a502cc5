"""A terminal of our own: controlling terminal, size, signals, input at the program's pace, last words."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from sandbox_agent.process import Child, ProgramInput, Pty, PtyOutput
from support.processes import DEADLINE, ENV


@contextmanager
def signals_as_in_the_server() -> Iterator[None]:
    """A program that is started where a signal is ignored ignores it too; the server ignores none."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Seen:
    def __init__(self) -> None:
        self.output = bytearray()
        self.changed = asyncio.Event()

    def take(self, chunk: bytes) -> None:
        self.output += chunk
        self.changed.set()

    async def until(self, pattern: bytes) -> re.Match[bytes]:
        async with asyncio.timeout(DEADLINE):
            while (found := re.search(pattern, bytes(self.output))) is None:
                self.changed.clear()
                await self.changed.wait()
        return found


@asynccontextmanager
async def on_a_terminal(*command: str, cols: int = 80, rows: int = 24) -> AsyncIterator[tuple[Child, Pty, Seen]]:
    pty, seen = Pty(cols, rows), Seen()
    ends = {"stdin": pty.slave, "stdout": pty.slave, "stderr": pty.slave}
    with signals_as_in_the_server():
        child = Child.launch(pty.command(command), env=ENV, **ends)  # type: ignore[arg-type]
    try:
        await child.watch_output(PtyOutput(pty.master, seen.take))
        yield child, pty, seen
    finally:
        child.signal_session(signal.SIGKILL)
        await child.exits_within(DEADLINE)
        await child.last_output(0.0)
        await child.end()
        pty.close()


async def test_the_program_has_the_terminal_as_its_own_and_knows_its_size() -> None:
    script = "tty; stty size; exec 3</dev/tty && echo own"
    async with on_a_terminal("/bin/sh", "-c", script, cols=101, rows=33) as (_, pty, seen):
        await seen.until(b"own")
        assert seen.output.split() == [pty.path.encode(), b"33", b"101", b"own"]


async def test_ctrl_c_reaches_the_foreground_program() -> None:
    script = "trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.05; done"
    async with on_a_terminal("/bin/sh", "-c", script) as (child, pty, seen):
        await seen.until(b"up")
        os.write(pty.master, b"\x03")
        await seen.until(b"caught")
        assert (await child.exited()).code == 7


async def test_a_new_size_is_told_to_the_program() -> None:
    async with on_a_terminal("/bin/sh", "-c", "trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done") as (
        _,
        pty,
        seen,
    ):
        await seen.until(b"up")
        pty.resize(132, 50)
        await seen.until(b"50 132")


async def test_what_was_printed_last_is_there_after_the_exit() -> None:
    async with on_a_terminal("/bin/sh", "-c", "printf 'last words'") as (child, _, seen):
        await child.exited()
        await child.last_output(0.0)
        assert seen.output == b"last words"


async def test_the_jobs_of_an_interactive_shell_end_with_its_session() -> None:
    async with on_a_terminal("/bin/bash", "--norc", "-i") as (child, pty, seen):
        os.write(pty.master, b"sleep 1000 & echo job $!.\n")
        job = int((await seen.until(rb"job (\d+)\."))[1])
        assert os.getpgid(job) != child.pid
        child.signal_session(signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            while Path(f"/proc/{job}").exists() and "Z" not in Path(f"/proc/{job}/stat").read_text().rpartition(")")[2]:
                await asyncio.sleep(0.01)


async def test_writers_wait_for_one_who_does_not_read_and_keep_their_order() -> None:
    read, write = os.pipe()
    end = ProgramInput(write)
    first = asyncio.create_task(end.write(b"1" * 300_000))
    second = asyncio.create_task(end.write(b"2" * 10))
    await asyncio.sleep(0.05)
    assert not first.done()
    got = bytearray()
    async with asyncio.timeout(DEADLINE):
        while not second.done() or len(got) < 300_010:
            got += await asyncio.to_thread(os.read, read, 65_536)
    assert (await first, await second) == (300_000, 10)
    assert got == b"1" * 300_000 + b"2" * 10
    end.close()
    os.close(read)


async def test_a_writer_whose_time_is_up_says_how_much_was_taken() -> None:
    read, write = os.pipe()
    end = ProgramInput(write)
    taken = await end.write(b"x" * 300_000, within=0.05)
    assert 0 < taken < 300_000
    assert await end.write(b"y", within=0.01) == 0
    assert len(os.read(read, 400_000)) == taken
    end.close()
    os.close(read)


async def test_writers_give_up_when_it_is_closed() -> None:
    read, write = os.pipe()
    end = ProgramInput(write)
    writers = [asyncio.create_task(end.write(b"x" * 200_000)) for _ in range(3)]
    await asyncio.sleep(0.05)
    writers[1].cancel()
    await asyncio.sleep(0)
    end.close()
    async with asyncio.timeout(DEADLINE):
        taken = await asyncio.gather(writers[0], writers[2])
    assert taken[0] < 200_000
    assert taken[1] == 0
    os.close(read)
