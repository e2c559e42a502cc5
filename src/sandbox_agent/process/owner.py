"""The process that we serve: whoever embeds a server must not leave one behind, whatever ends it.

Two ways to learn of its end, since each has a hole. A pipe that it holds closes with it, on every system; but a copy
of the pipe may be in a child that it forked. A pidfd (Linux) names the process itself. PR_SET_PDEATHSIG would not do:
the kernel sends it when the *thread* that started us ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterator

_LOOK_EVERY = 1.0
_STDIN = 0


async def owner_ended(pid: int) -> None:
    """Return when the process `pid` has ended, or has closed the pipe that is our standard input, if it is one."""
    ended = asyncio.Event()
    with _pipe_watched(ended), _process_watched(pid, ended) as is_watched:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if is_watched else _LOOK_EVERY):
                    await ended.wait()
            if not is_watched and not _exists(pid):
                return


@contextlib.contextmanager
def _pipe_watched(ended: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            if not _read_some():
                loop.remove_reader(_STDIN)
                ended.set()

    if not _is_pipe(_STDIN):
        yield
        return
    loop.add_reader(_STDIN, read)
    try:
        yield
    finally:
        loop.remove_reader(_STDIN)


@contextlib.contextmanager
def _process_watched(pid: int, ended: asyncio.Event) -> Iterator[bool]:
    """Whether the system tells us of its end; else somebody has to look."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        ended.set()
        yield True
        return
    except (AttributeError, OSError):
        yield False
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        yield True
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _read_some() -> bytes:
    try:
        return os.read(_STDIN, 4096)
    except ConnectionResetError:
        return b""


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
