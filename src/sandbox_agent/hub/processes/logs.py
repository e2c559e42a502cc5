"""Reading the log of a process: which part, which of its streams, and what was cut."""

from __future__ import annotations

from collections import deque
from typing import Annotated, NamedTuple

import msgspec

from sandbox_agent.hub.processes.process import Process
from sandbox_agent.hub.processes.views import LogStream
from sandbox_agent.process import Entry, LogReader

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class LogsWanted(msgspec.Struct, kw_only=True):
    """`tail` is a number of entries, `since` the sequence after which to begin."""

    stream: LogStream | None = None
    tail: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    since: _Count | None = None


class Page(NamedTuple):
    stream: LogStream
    entries: list[Entry]
    cut: tuple[int, int] | None
    """The first and the last number that are not there any more."""
    next: int
    """Where to go on: the number of the last entry that was looked at."""
    is_over: bool


def stream_of(process: Process, wanted: LogsWanted) -> LogStream:
    return wanted.stream or ("pty" if process.info.tty else "combined")


def chosen(entries: list[Entry], stream: LogStream) -> list[Entry]:
    return entries if stream == "combined" else [entry for entry in entries if entry.stream == stream]


async def open_log(process: Process, wanted: LogsWanted, after: int | None = None) -> LogReader:
    """`after` is where one who was cut off goes on; it wins over what is wanted."""
    log = process.log
    if after is not None:
        return log.read_from(after)
    if wanted.tail is None:
        return log.read_from(wanted.since or 0)
    begin = await _tail_start(process, stream_of(process, wanted), wanted.tail)
    return log.read_from(max(begin, wanted.since or 0))


async def read_log(process: Process, wanted: LogsWanted, *, wait: float) -> Page:
    """The next part, waiting for it if there is none yet."""
    stream = stream_of(process, wanted)
    reader = await open_log(process, wanted)
    piece = await reader.take(wait=wait)
    return Page(stream, chosen(piece.entries, stream), piece.cut, reader.position, reader.is_over)


async def _tail_start(process: Process, stream: LogStream, count: int) -> int:
    """The number before the last `count` entries of the stream."""
    log = process.log
    if count == 0:
        return log.last
    if stream == "combined" or process.info.tty:
        return max(log.first - 1, log.last - count)
    numbers: deque[int] = deque(maxlen=count)
    reader = log.read_from(log.first - 1)
    while reader.position < log.last:
        piece = await reader.take()
        numbers += [entry.sequence for entry in chosen(piece.entries, stream)]
        if not piece.entries:
            break
    return numbers[0] - 1 if numbers else log.last
