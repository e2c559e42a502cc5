"""Events that go to a reader without a turn of the loop."""

from __future__ import annotations

import asyncio

from sandbox_agent.core.ids import ConnectionId, connection_stream
from sandbox_agent.hub.clients.stream import Batch, Reader, Stream
from sandbox_agent.store import MemoryStore
from support.store_words import KEEP_ALL
from support.waiting import until


class Pushed:
    """A reader somebody waits on; `batches` are those that were pushed, unless it `refuses`."""

    def __init__(self, stream: Stream) -> None:
        self.batches: list[Batch] = []
        self.taken: list[Batch] = []
        self.refuses = False
        self.reader: Reader = stream.read_from(None)
        self.reader.give = self._give
        self.task = asyncio.create_task(self._take())

    def _give(self, batch: Batch) -> bool:
        if not self.refuses:
            self.batches.append(batch)
        return not self.refuses

    async def _take(self) -> None:
        while not self.reader.is_over:
            batch = await self.reader.take(wait=30)
            if batch is not None:
                self.taken.append(batch)

    async def is_waited_on(self) -> None:
        await until(lambda: self.reader.is_waiting)


def lines(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


async def opened() -> tuple[Stream, Pushed]:
    store = MemoryStore(retention=KEEP_ALL)
    stream = Stream(store, connection_stream(ConnectionId("c")), memory_limit=1 << 20)
    return stream, Pushed(stream)


async def test_one_who_waits_gets_an_event_before_append_returns_and_not_again() -> None:
    stream, pushed = await opened()
    await pushed.is_waited_on()
    stream.append_own(lines(1))
    assert pushed.batches == [Batch(1, lines(1))]
    assert (pushed.reader.position, pushed.reader.handed_on) == (1, 1)
    stream.append_own(lines(2, 3))
    assert pushed.batches[1:] == [Batch(2, lines(2, 3))]
    stream.end("over")
    await pushed.task
    assert pushed.taken == []


async def test_what_cannot_be_pushed_is_taken_and_what_follows_waits_behind_it() -> None:
    stream, pushed = await opened()
    await pushed.is_waited_on()
    pushed.refuses = True
    stream.append_own(lines(1))
    pushed.refuses = False
    stream.append_own(lines(2))
    assert pushed.batches == []
    await until(lambda: pushed.reader.position == 2)
    assert [line for batch in pushed.taken for line in batch.lines] == lines(1, 2)
    await pushed.is_waited_on()
    stream.append_own(lines(3))
    assert pushed.batches == [Batch(3, lines(3))]
    stream.end("over")
    await pushed.task


async def test_nothing_is_pushed_before_somebody_waits_nor_after_the_reader_was_stopped() -> None:
    stream, pushed = await opened()
    stream.append_own(lines(1))
    assert pushed.batches == []
    await pushed.is_waited_on()
    pushed.reader.stop("enough")
    stream.append_own(lines(2))
    await pushed.task
    assert pushed.batches == []
    assert [line for batch in pushed.taken for line in batch.lines] == lines(1)


async def test_a_burst_is_left_to_be_gathered() -> None:
    stream, pushed = await opened()
    await pushed.is_waited_on()
    stream.append_own(lines(*range(1000)))
    assert pushed.batches == []
    await until(lambda: pushed.reader.position == 1000)
    stream.end("over")
    await pushed.task


async def test_whoever_waits_for_the_readers_learns_of_a_push() -> None:
    stream, pushed = await opened()
    await pushed.is_waited_on()
    stream.append_own(lines(1))
    async with asyncio.timeout(10):
        await stream.handed_on(1, patience=60)
    stream.end("over")
    await pushed.task
