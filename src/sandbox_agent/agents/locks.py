"""A lock that processes share, waited for without blocking the loop."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sandbox_agent.errors import InstallError


@asynccontextmanager
async def file_lock(path: Path, *, deadline: float = 1800.0) -> AsyncIterator[None]:
    """Hold `path` exclusively; the kernel lets go of it if this process dies. Raises InstallError after `deadline`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            async with asyncio.timeout(deadline):
                while not _take(handle):  # noqa: ASYNC110 - flock cannot wake a loop
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise InstallError(f"another process has held {path} for {deadline:.0f} s") from None
        yield
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
