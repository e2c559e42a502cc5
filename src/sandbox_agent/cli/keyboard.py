"""Reading a line from the terminal without stopping everything else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import Iterator


def can_ask() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextlib.contextmanager
def quiet_control_keys() -> Iterator[None]:
    """While it lasts, the terminal does not write ^C into what is being drawn."""
    if not can_ask():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = [*before]
    quiet[3] &= ~termios.ECHOCTL
    termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def read_line() -> str | None:
    """The next line that is typed; None at the end of input. Can be cancelled: nothing typed later is lost."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str | None] = loop.create_future()
    held: list[bytes] = []

    def take() -> None:
        data = os.read(sys.stdin.fileno(), 4096)  # a terminal gives whole lines
        held.append(data)
        if not typed.done() and (not data or b"\n" in data):
            text = b"".join(held).decode(errors="replace")
            typed.set_result(text.strip() if text else None)

    loop.add_reader(sys.stdin.fileno(), take)
    try:
        return await typed
    finally:
        loop.remove_reader(sys.stdin.fileno())
