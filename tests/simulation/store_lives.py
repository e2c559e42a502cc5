"""Lives of a store alone, without a hub: nearer to the disk than a hub's histories come, and many more of them.

`python -m simulation --store` goes on with new seeds until something is wrong. What must hold, whatever happens:

- nothing is ever read at a sequence but what was appended there, and sequences only rise;
- what was appended while the store said that it was well is there after a kill, or a notice stands for it;
- a turn that was put while it was well is known after a kill;
- the store starts again, if need be after a repair.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import tempfile
from pathlib import Path

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.errors import StoreError
from sandbox_agent.store import SqliteStore
from sandbox_agent.store.sqlite.check import repair_database
from sandbox_agent.store.sqlite.writer import Pace
from simulation.disk import HOME, SimulatedDisk
from simulation.loop import SteppedBackground, VirtualLoop
from simulation.server import EPOCH, cancel_others, deterministic, empty_database
from simulation.trace import Trace
from support.store_words import ANY, KEEP_ALL, KEY, read_all, session

STREAMS = [StreamKey(f"session:mock:{name}") for name in ("one", "two", "three")]
LOST = "_sandboxagent/history/lost"


class Life:
    """One seed's story."""

    def __init__(self, seed: int, loop: VirtualLoop, trace: Trace) -> None:
        self.random = random.Random(seed)
        self._loop = loop
        self._trace = trace
        self.home = Path(tempfile.mkdtemp(prefix="store-", dir=HOME))
        self.lines: dict[StreamKey, dict[int, bytes]] = {stream: {} for stream in STREAMS}
        self.sure = dict.fromkeys(STREAMS, 0)
        self.appended: dict[StreamKey, int] = {}
        """How far streams were appended to in this life."""
        self.turns: set[str] = set()
        self.is_damaged = False
        self.count = 0

    async def run(self) -> None:
        try:
            empty_database(self.home / "life0")
            for number in range(self.random.randint(2, 4)):
                await self._live(self.home / f"life{number}")
        finally:
            shutil.rmtree(self.home)

    async def _live(self, directory: Path) -> None:
        """From a start to a kill; the next life finds what was on disk then."""
        directory.mkdir(exist_ok=True)
        path = directory / "history.db"
        disk = SimulatedDisk(self.random)
        self.appended.clear()
        store = await self._start(path, disk)
        try:
            if self.random.random() < 0.3:  # the first that it does is to look for the ends of streams
                disk.rate = 0.5
                for _ in range(4):
                    self._append(store)
                disk.rate = 0.0
            await self._check(store)
            for _ in range(self.random.randint(5, 40)):
                await self._step(store, disk)
            self._note_what_is_sure(store)
            number = int(directory.name[4:]) + 1
            shutil.copytree(directory, self.home / f"life{number}")  # a kill: memory is gone, the files are not
        finally:
            disk.heal()
            await store.close()
        if self.random.random() < 0.4:
            self._damage(self.home / f"life{number}")

    async def _start(self, path: Path, disk: SimulatedDisk) -> SqliteStore:
        pace = Pace(linger=self.random.choice([0.0, 30.0]), longest_retry=0.01)
        memory = self.random.choice([6000, 1 << 20])
        store = SqliteStore(
            path,
            retention=KEEP_ALL,
            memory_bytes=memory,
            search_text_bytes=0,
            clock=lambda: EPOCH + self._loop.time(),
            pace=pace,
            disk=disk,
            background=SteppedBackground(self._loop),
        )
        try:
            await store.open()
        except StoreError:
            assert self.is_damaged
            if self._is_hopeless(path):
                path.unlink()
                self._expect_nothing()
            else:
                repair_database(path)
            await store.open()
        return store

    def _is_hopeless(self, path: Path) -> bool:
        try:
            repair_database(path)
        except StoreError:
            return True
        return False

    async def _step(self, store: SqliteStore, disk: SimulatedDisk) -> None:
        kind = self.random.randrange(12)
        self._trace.add("step", f"{kind} {store.is_degraded} {store.backlog()} {disk.is_full} {disk.rate}")
        match kind:
            case 0 | 1 | 2 | 3 | 4:
                self._append(store)
            case 5:
                store.flush()
                self._note_what_is_sure(store)
            case 6:
                self._put_turn(store)
            case 7:
                store.put_session(session(updated=float(self.count), title="x" * self.random.randrange(50)))
            case 8:
                disk.is_full = self.random.random() < 0.3
            case 9:
                disk.rate = self.random.choice([0.0, 0.0, 0.05, 0.5])
            case 10:
                await asyncio.sleep(self.random.choice([0, 0.001, 0.006, 0.1, 3.0]))
            case _:
                await self._read_some(store)

    def _append(self, store: SqliteStore) -> None:
        stream = self.random.choice(STREAMS)
        new = []
        for _ in range(self.random.choice([1, 1, 3, 30])):
            self.count += 1
            new.append(json.dumps({"at": self.count, "pad": "y" * self.random.randrange(80)}).encode())
        is_flushed = self.random.random() < 0.5
        try:
            first = store.append(stream, "agent", new, flush=is_flushed)
        except StoreError:
            return  # it could not find out where the stream ends: that is for the caller to know
        assert first > self.sure[stream] or self.is_damaged, f"{stream} begins anew at {first}"
        kept = {at: line for at, line in self.lines[stream].items() if at < first}  # what is behind was lost
        self.lines[stream] = {**kept, **dict(enumerate(new, first))}
        self.appended[stream] = first + len(new) - 1
        if is_flushed:
            self._note_what_is_sure(store)

    def _put_turn(self, store: SqliteStore) -> None:
        self.count += 1
        store.put_turn(KEY, f"t{self.count}", None)
        if not store.is_degraded:
            self.turns.add(f"t{self.count}")

    def _note_what_is_sure(self, store: SqliteStore) -> None:
        store.flush()
        if not store.is_degraded:
            self.sure.update(self.appended)

    async def _read_some(self, store: SqliteStore) -> None:
        stream = self.random.choice(STREAMS)
        try:
            entries = await store.read(stream, after=self.random.randrange(50), limit=self.random.randint(1, 40))
        except StoreError:
            return
        for entry in entries:
            self._check_entry(stream, entry.sequence, entry.envelope)

    async def _check(self, store: SqliteStore) -> None:
        for stream in STREAMS:
            try:
                await self._check_stream(store, stream)
            except StoreError:
                assert self.is_damaged
                self.lines[stream], self.sure[stream] = {}, 0
        for turn in self.turns:
            try:
                is_known, _ = await store.get_turn(KEY, turn)
            except StoreError:
                is_known = False
            assert is_known or self.is_damaged, f"turn {turn} is forgotten"
        try:
            await store.list_sessions(ANY)
        except StoreError:
            assert self.is_damaged

    async def _check_stream(self, store: SqliteStore, stream: StreamKey) -> None:
        entries = await read_all(store, stream, limit=self.random.choice([7, 1000]))
        reached = 0
        for entry in entries:
            told = self._check_entry(stream, entry.sequence, entry.envelope)
            begins = entry.sequence if told is None else told
            assert begins == reached + 1 or self.is_damaged, (
                f"{stream}: nothing is said of {reached + 1} to {begins - 1}"
            )
            assert entry.sequence > reached
            reached = entry.sequence
        end = store.last_sequence(stream)
        assert reached >= self.sure[stream] or self.is_damaged, (
            f"{stream} ends at {reached}, sure is {self.sure[stream]}"
        )
        self.lines[stream] = {at: line for at, line in self.lines[stream].items() if at <= end}
        self.sure[stream] = min(self.sure[stream], end)

    def _check_entry(self, stream: StreamKey, sequence: int, envelope: bytes) -> int | None:
        """Where a notice of loss begins; None for a line, which must be the one that was appended there."""
        content = json.loads(envelope)
        if content.get("method") == LOST:
            assert content["params"]["toSequence"] == sequence
            return int(content["params"]["fromSequence"])
        assert self.lines[stream].get(sequence) == envelope, f"{stream} has something else at {sequence}"
        return None

    def _damage(self, directory: Path) -> None:
        """Flip a bit, or tear the end off, as a failing disk or a power cut would."""
        self.is_damaged = True
        files = [
            file for file in directory.iterdir() if file.stat().st_size and not file.name.endswith((".lock", "-shm"))
        ]
        file = self.random.choice(sorted(files))
        content = bytearray(file.read_bytes())
        if self.random.random() < 0.5:
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        elif ".journal." in file.name or file.name.endswith("-wal"):
            del content[self.random.randrange(len(content)) :]
        file.write_bytes(content)

    def _expect_nothing(self) -> None:
        self.sure = dict.fromkeys(STREAMS, 0)
        self.turns.clear()


def simulate(seed: int) -> Trace:
    """What happened. Raises AssertionError, with the seed, when something does not hold."""
    loop = VirtualLoop(random.Random(f"{seed}/store"), start=1000.0)
    trace = Trace()
    trace.clock = loop.time
    life = Life(seed, loop, trace)
    try:
        with deterministic(loop.time, loop.chance):
            loop.run_until_complete(life.run())
            loop.run_until_complete(cancel_others())
    except BaseException as error:
        error.add_note(f"replay it: PYTHONPATH=tests .venv/bin/python -m simulation --store --seed {seed}")
        raise
    finally:
        loop.close()
    return trace
