"""`GET /v1/processes/{id}/logs`: the numbered output of a process, as JSON or followed as server-sent events."""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from contextlib import nullcontext
from typing import Any

import msgspec

from sandbox_agent.errors import Forbidden, InvalidParams, NotFound, TooMany
from sandbox_agent.http.asgi.exchange import Exchange, last_event_id
from sandbox_agent.http.asgi.routes import Operation
from sandbox_agent.http.asgi.sse import HEARTBEAT, beat, begin, finish, peer_left
from sandbox_agent.hub.processes.logs import LogsWanted, chosen, open_log, stream_of
from sandbox_agent.hub.processes.process import Process
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.hub.processes.views import LogStream
from sandbox_agent.process import Entry, LogReader


class LogsQuery(LogsWanted, kw_only=True):
    follow: bool = False
    hold: bool = False
    """With `follow`: nothing is dropped that this reader has not got; the process waits for it instead."""


class LogEntry(msgspec.Struct, frozen=True, rename="camel"):
    """`data` is base64. Numbers have no holes, over all streams of the process."""

    sequence: int
    stream: LogStream
    timestamp_ms: int
    data: str
    encoding: str


class LogCut(msgspec.Struct, frozen=True, rename="camel"):
    """Entries that are over the limit of the log and are not kept."""

    from_sequence: int
    to_sequence: int


class ProcessLogs(msgspec.Struct, frozen=True, rename="camel"):
    process_id: str
    stream: LogStream
    entries: list[LogEntry]
    cut: LogCut | None


READ_LOG = Operation(
    "readProcessLogs",
    "Read or follow the output of a process",
    "processes",
    "With `follow=true` the answer is a stream of server-sent events: `log` with one entry each, its `sequence` being "
    "the event id; `cut` if entries are not kept any more; at the end `exit` with the process. `Last-Event-ID` resumes "
    "after that entry. A slow reader holds nobody, and is told what it missed; one that asks for `hold` misses "
    "nothing, and the process waits for it.",
    query=LogsQuery,
    returns=ProcessLogs,
    errors=(InvalidParams, NotFound, Forbidden, TooMany),
    headers=(("Last-Event-ID", "Sequence of the last entry received; with `follow`.", False),),
)


class ProcessLogsApi:
    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def read(self, exchange: Exchange) -> None:
        self._processes.require_allowed()
        process = self._processes.get(exchange.path("id"))
        wanted = exchange.query(LogsQuery)
        stream = stream_of(process, wanted)
        if wanted.follow:
            reader = await open_log(process, wanted, last_event_id(exchange.scope))
            with process.hold.reading(reader) if wanted.hold else nullcontext():
                await _follow(exchange, process, reader, stream)
        else:
            await _send(exchange, process, await open_log(process, wanted), stream)


async def _send(exchange: Exchange, process: Process, reader: LogReader, stream: LogStream) -> None:
    """All that there is now, a part at a time."""
    last = process.log.last
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
    cut: tuple[int, int] | None = None
    if not exchange.is_head:
        head = msgspec.json.encode({"processId": process.info.id, "stream": stream})[:-1] + b',"entries":['
        comma = b""
        while reader.position < last:
            piece = await reader.take()
            cut = cut or piece.cut
            entries = chosen(piece.entries, stream)
            if entries:
                parts = [head]
                for entry in entries:
                    parts += (comma, *_encoded(entry))
                    comma = b","
                body, head = b"".join(parts), b""
                await exchange.send({"type": "http.response.body", "body": body, "more_body": True})
            elif not piece.entries:
                break
        body = head + b'],"cut":' + msgspec.json.encode(None if cut is None else LogCut(*cut)) + b"}"
        await exchange.send({"type": "http.response.body", "body": body, "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b""})


async def _follow(exchange: Exchange, process: Process, reader: LogReader, stream: LogStream) -> None:
    writing = asyncio.create_task(_write(exchange, process, reader, stream))
    leaving = asyncio.create_task(peer_left(exchange.receive))
    try:
        await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            writing.result()
    finally:
        writing.cancel()
        leaving.cancel()
        await asyncio.gather(writing, leaving, return_exceptions=True)


async def _write(exchange: Exchange, process: Process, reader: LogReader, stream: LogStream) -> None:
    await begin(exchange.send)
    while not exchange.is_head and not reader.is_over:
        piece = await reader.take(wait=HEARTBEAT)
        process.hold.check()
        parts = [] if piece.cut is None else [_event(b"cut", piece.cut[1], LogCut(*piece.cut))]
        for entry in chosen(piece.entries, stream):
            parts += (b"event: log\nid: %d\ndata: " % entry.sequence, *_encoded(entry), b"\n\n")
        if parts:
            await exchange.send({"type": "http.response.body", "body": b"".join(parts), "more_body": True})
        elif not piece.entries and not reader.is_over:
            await beat(exchange.send)
    if not exchange.is_head:
        await process.exited.wait()
        body = _event(b"exit", reader.position, process.info)
        await exchange.send({"type": "http.response.body", "body": body, "more_body": True})
    await finish(exchange.send, "process has exited")


def _event(kind: bytes, number: int, value: Any) -> bytes:
    return b"event: %b\nid: %d\ndata: %b\n\n" % (kind, number, msgspec.json.encode(value))


def _encoded(entry: Entry) -> tuple[bytes, bytes, bytes]:
    """In pieces, so that what is long is copied once, when all is joined."""
    head = b'{"sequence":%d,"stream":"%b","timestampMs":%d,"data":"' % (
        entry.sequence,
        entry.stream.encode(),
        entry.at_ms,
    )
    return head, b2a_base64(entry.content, newline=False), b'","encoding":"base64"}'
