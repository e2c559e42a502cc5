"""One pipe of a program: a pause holds from the first chunk on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest
import uvloop

from sandbox_agent.process.child import Output, enlarge

_SIZE = 1 << 20


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_whoever_pauses_at_the_first_chunk_gets_no_second_one(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """A program that prints at once must not fill a log that waits for its reader."""
    chunks: list[bytes] = []

    async def read() -> None:
        reading, writing = os.pipe()
        pipe = os.fdopen(reading, "rb")
        enlarge(pipe, _SIZE)
        os.set_blocking(writing, False)
        written = os.write(writing, b"x" * _SIZE)

        def take(chunk: bytes) -> None:
            chunks.append(chunk)
            output.pause()

        output = Output(pipe, take, lambda: None)
        await output.connect()
        for _ in range(20):  # turns of the loop in which another chunk could come
            await asyncio.sleep(0)
        assert len(chunks) == 1
        while (got := sum(map(len, chunks))) < written:
            output.resume()
            await asyncio.sleep(0)
        assert got == written
        os.close(writing)
        output.close()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(read(), 20))
