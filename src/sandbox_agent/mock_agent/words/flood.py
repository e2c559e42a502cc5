"""Words that stream: slowly, fast, or much at once."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Iterable

from sandbox_agent.mock_agent.session import MAX_TURN_UPDATES
from sandbox_agent.mock_agent.turn import Turn
from sandbox_agent.mock_agent.wire import encode, notification_line
from sandbox_agent.mock_agent.words.table import number, word

_TICK = 0.05
_BATCH_LINES = 500
_MARK = "\x00"


@word("slow [N]", "says `tick 1`, `tick 2`, … every 50 ms, N times or until cancelled")
async def slow(turn: Turn, rest: str) -> None:
    limit = number(rest, default=0, low=0, high=10**9)
    for index in itertools.count(1):
        turn.say(f"tick {index} ")
        if index == limit:
            return
        await asyncio.sleep(_TICK)


@word(
    "chunks N SIZE",
    "N message chunks of SIZE characters as fast as they are read; each text is its running number from 1, "
    "a blank, and filling",
)
async def chunks(turn: Turn, rest: str) -> None:
    count, _, size = rest.partition(" ")
    total = number(count, default=None, low=0, high=10**8)
    width = number(size.strip(), default=10, low=1, high=10**7)
    update_head, update_tail = _split_at_mark(encode(turn.message({"type": "text", "text": _MARK})))
    params = {"sessionId": turn.session.session_id, "update": turn.message({"type": "text", "text": _MARK})}
    head, tail = _split_at_mark(notification_line("session/update", params))
    batch = max(1, min(_BATCH_LINES, 4_000_000 // width))
    send, drain = turn.client.stdout.send, turn.client.stdout.drain
    for first in range(1, total + 1, batch):
        texts = [
            f"{index} ".ljust(width, "x")[: max(width, len(str(index)))].encode()
            for index in range(first, min(first + batch, total + 1))
        ]
        for text in texts:
            send(head + text + tail)
        turn.record.add(update_head + text + update_tail for text in texts[-MAX_TURN_UPDATES:])
        await drain()


@word("bigline [MB]", "one valid update line with MB mebibytes of text, 20 by default")
async def bigline(turn: Turn, rest: str) -> None:
    size = number(rest, default=20, low=0, high=512) * 1024 * 1024
    turn.tell(turn.message({"type": "text", "text": "x" * size}))
    await turn.client.stdout.drain()


@word("stderr N", "writes N lines on stderr, then says `done`")
async def stderr(turn: Turn, rest: str) -> None:
    count = number(rest, default=None, low=0, high=10**8)
    await write_stderr(f"mock agent: stderr line {index}\n" for index in range(1, count + 1))
    turn.say("done")


async def write_stderr(lines: Iterable[str]) -> None:
    """Written by a thread that nobody waits for at the end, since a peer may not be reading."""
    loop = asyncio.get_running_loop()
    written = asyncio.Event()

    def write() -> None:
        waiting = iter(lines)
        while batch := "".join(itertools.islice(waiting, _BATCH_LINES)).encode():
            while batch:
                batch = batch[os.write(2, batch) :]
        loop.call_soon_threadsafe(written.set)

    threading.Thread(target=write, daemon=True).start()
    await written.wait()


def _split_at_mark(line: bytes) -> tuple[bytes, bytes]:
    head, tail = line.split(encode(_MARK)[1:-1])
    return head, tail
