"""One numbered stream of events and those who read it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.ids import StreamKey
from sandbox_agent.core.methods import STREAM_GAP
from sandbox_agent.core.window import Gap, Lines, Stored, Window
from sandbox_agent.errors import InvalidParams, StreamTaken
from sandbox_agent.store.base import Store

_FETCH = 4096
_RUNS = 2_000_000
"""Pointers to events that have left memory; each costs 24 bytes."""
_FEW = 16
"""So many events are pushed; a burst of more is better gathered."""


class Batch(msgspec.Struct, frozen=True):
    """Neighbouring events: `first_id` and following."""

    first_id: int
    lines: list[bytes]


class Stream:
    """Events in order, numbered from 1, kept in memory while they fit and in the store afterwards."""

    def __init__(self, store: Store, own: StreamKey, *, memory_limit: int) -> None:
        self._store = store
        self.own = own
        self._window = Window(memory_limit=memory_limit, run_limit=_RUNS)
        self._reader: Reader | None = None
        self._readers: list[Reader] = []
        self._handed_on = asyncio.Event()
        self._position = 0
        self.end_reason: str | None = None

    @property
    def last_id(self) -> int:
        return self._window.last_id

    @property
    def has_reader(self) -> bool:
        return self._reader is not None

    @property
    def has_readers(self) -> bool:
        return bool(self._readers)

    @property
    def waiting(self) -> int:
        """Events that no reader has taken yet."""
        return self.last_id - (self._position if self._reader is None else self._reader.position)

    def append(self, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        """Number lines that are entries `sequence` and following of `stream` in the store."""
        first = self._window.last_id + 1
        self._window.append(stream, sequence, lines)
        for reader in self._readers:
            if not reader.push(first, lines):
                reader.wake.set()

    def append_own(self, lines: Sequence[bytes]) -> None:
        """Number lines that belong to this stream alone. They end with the server, so nothing has to be flushed.

        After its end there is nobody to tell: its record may be dropped by then, and must not begin anew."""
        if self.end_reason is not None:
            return
        kept = list(lines)
        self.append(self.own, self._store.append(self.own, "server", kept, flush=False), kept)

    def forget(self, stream: StreamKey) -> None:
        """A session's history is deleted: what was told of it and has left memory is a gap from now on."""
        self._window.forget(stream)

    def end(self, reason: str) -> None:
        self.end_reason = self.end_reason or reason
        for reader in self._readers:
            reader.wake.set()

    def read_from(self, after: int | None) -> Reader:
        """Start reading after event `after`, taking over from any reader; None goes on where the last one stopped.

        Raises StreamTaken for None while somebody reads, InvalidParams for an id that has not been given out."""
        if after is None:
            if self._reader is not None:
                raise StreamTaken("another reader has this stream; send Last-Event-ID to take it over")
            after = self._position
        self._require_given(after)
        if self._reader is not None:
            self._reader.stop("taken over by another reader")
        self._reader = self.follow(after)
        return self._reader

    def follow(self, after: int) -> Reader:
        """Read after event `after`, beside whoever else reads. Raises InvalidParams for an id not given out."""
        self._require_given(after)
        reader = Reader(self, after)
        self._readers.append(reader)
        return reader

    def has_handed_on(self, event: int) -> bool:
        """Whether all who read have passed on `event`."""
        return all(reader.handed_on >= event for reader in self._readers)

    async def handed_on(self, event: int, *, patience: float) -> None:
        """Return when all who read have passed on `event`, or have passed on nothing for `patience` seconds."""
        while not self.has_handed_on(event):
            self._handed_on.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._handed_on.wait()
            except TimeoutError:
                return

    def _require_given(self, after: int) -> None:
        if not 0 <= after <= self.last_id:
            raise InvalidParams(f"Last-Event-ID {after} was never given out; the newest is {self.last_id}")

    async def _next(self, reader: Reader, wait: float) -> Batch | None:
        """What follows the reader's position, waiting `wait` seconds for it; None when nothing came or it is over."""
        piece = self._window.read(reader.position)
        if piece is None:
            if self.end_reason is not None:
                return None
            wake = reader.wake
            wake.clear()
            reader.is_waiting = True
            timer = asyncio.get_running_loop().call_later(wait, wake.set)
            try:
                await wake.wait()
            finally:
                timer.cancel()
                reader.is_waiting = False
            piece = None if reader.stopped.is_set() else self._window.read(reader.position)
        match piece:
            case None:
                return None
            case Lines(first, lines):
                return Batch(first, lines)
            case Stored():
                return await self._fetch(piece)
            case Gap(first, last):
                return self._gap(first, last)

    async def _fetch(self, wanted: Stored) -> Batch:
        limit = min(wanted.count, _FETCH)
        entries = await self._store.read(wanted.stream, after=wanted.sequence - 1, limit=limit)
        missing = entries[0].sequence - wanted.sequence if entries else wanted.count
        if missing:
            return self._gap(wanted.first, wanted.first + min(missing, wanted.count) - 1)
        # An event's id follows from its sequence: what stands behind a hole is for the next batch.
        unbroken = takewhile(lambda pair: pair[0] == pair[1].sequence, enumerate(entries, wanted.sequence))
        return Batch(wanted.first, [entry.envelope for _, entry in unbroken])

    def _gap(self, first: int, last: int) -> Batch:
        sessions = [key.split(":", 2)[2] for key in self._window.streams if key.startswith("session:")]
        notice = frames.notification(STREAM_GAP, {"fromId": first, "toId": last, "sessions": sessions})
        return Batch(last, [notice])

    def _released(self, reader: Reader) -> None:
        if reader in self._readers:
            self._readers.remove(reader)
            self._handed_on.set()
        if self._reader is reader:
            self._reader = None
            self._position = reader.position


class Reader:
    """A position in a stream that moves on as batches are taken. Close it when the peer is gone."""

    def __init__(self, stream: Stream, after: int) -> None:
        self._stream = stream
        self.position = after
        self.handed_on = after
        """What was taken before the last take: its taker has been done with it."""
        self.give: Callable[[Batch], bool] | None = None
        """Passes events on at once, or says that it cannot: then they are there to be taken, as always."""
        self.is_waiting = False
        """Somebody is in `take`, and there is nothing."""
        self.wake = asyncio.Event()
        self.stopped = asyncio.Event()
        self._stop_reason = ""

    @property
    def is_over(self) -> bool:
        """No more batches will come."""
        ended = self._stream.end_reason is not None and self.position >= self._stream.last_id
        return ended or self.stopped.is_set()

    @property
    def over_because(self) -> str:
        return self._stop_reason or self._stream.end_reason or ""

    async def take(self, *, wait: float) -> Batch | None:
        """The next events; None when none came within `wait` seconds or the stream is over."""
        if self.stopped.is_set():
            return None
        self._pass_on()
        batch = await self._stream._next(self, wait)  # noqa: SLF001
        if batch is not None:
            self.position = batch.first_id + len(batch.lines) - 1
        return batch

    def push(self, first: int, lines: list[bytes]) -> bool:
        """Give new events to one who waits for nothing else, without a turn of the loop in between."""
        if self.give is None or not self.is_waiting or self.position != first - 1 or len(lines) > _FEW:
            return False
        if self.stopped.is_set() or not self.give(Batch(first, lines)):
            return False
        self.position += len(lines)
        self._pass_on()
        return True

    def _pass_on(self) -> None:
        if self.handed_on != self.position:
            self.handed_on = self.position
            self._stream._handed_on.set()  # noqa: SLF001 - two halves of one thing

    def stop(self, reason: str) -> None:
        """End this reader, whatever it waits for."""
        self._stop_reason = self._stop_reason or reason
        self.stopped.set()
        self.wake.set()

    def close(self) -> None:
        self._stream._released(self)  # noqa: SLF001
