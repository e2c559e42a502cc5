"""Reading a line from the terminal without stopping everything else."""

from __future__ import annotations

import asyncio
import os
import sys


def can_ask() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


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
