"""A command that somebody waits for: run to its end, within a time, its output held up to a bound."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from sandbox_agent.hub.processes.views import ProcessResult
from sandbox_agent.process import Child
from sandbox_agent.process.child import PolledOutput


class _Held:
    """The first bytes of a stream; whether there were more."""

    def __init__(self, limit: int) -> None:
        self._parts: list[bytes] = []
        self._room = limit
        self.is_truncated = False

    def take(self, chunk: bytes) -> None:
        if len(chunk) > self._room:
            self.is_truncated = True
            chunk = chunk[: self._room]
        if chunk:
            self._room -= len(chunk)
            self._parts.append(chunk)

    @property
    def text(self) -> str:
        return b"".join(self._parts).decode(errors="replace")


async def run(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, *, timeout: float, output_bytes: int
) -> ProcessResult:
    """What came of it. Whatever it has started in its group ends with it. Raises OSError, ValueError."""
    began = time.monotonic()
    child = Child.launch(command, env=env, cwd=cwd, stderr=subprocess.PIPE)
    out, err = _Held(output_bytes), _Held(output_bytes)
    try:
        for pipe, held in ((child.stdout, out), (child.stderr, err)):
            if pipe is not None:
                await child.watch_output(PolledOutput(pipe.fileno(), held.take))
        is_in_time = await child.exits_within(timeout)
        took = time.monotonic() - began
        child.signal_group(signal.SIGKILL)
        await child.exits_within(5.0)
        await child.last_output()
    finally:
        if child.status is None:
            await asyncio.shield(child.end())
        else:  # its group is gone, or is being cancelled between the exit and the kill
            child.signal_group(signal.SIGKILL)
            asyncio.get_running_loop().call_soon(child.let_go)  # the answer does not wait for it
    status = child.status
    return ProcessResult(
        exit_code=status.code if status is not None and is_in_time and status.signal is None else None,
        signal=status.signal if status is not None and is_in_time else "SIGKILL",
        timed_out=not is_in_time,
        stdout=out.text,
        stderr=err.text,
        stdout_truncated=out.is_truncated,
        stderr_truncated=err.is_truncated,
        duration_ms=round(took * 1000),
    )
