"""Lives of a store on a disk that fails: a seed decides what is done, what goes wrong, and when the process dies.

`python -m support.simulated_store --seconds 600` (with `tests` on the path) goes on with new seeds until something is
wrong, and says which seed it was. What must hold, whatever happens:

- nothing is ever read at a sequence but what was appended there, and sequences only rise;
- what was appended while the store said that it was well is there after a kill, or a notice stands for it;
- a turn that was put while it was well is known after a kill;
- the store starts again, if need be after a repair.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.errors import StoreError
from sandbox_agent.store import SqliteStore
from sandbox_agent.store.sqlite.check import repair_database
from sandbox_agent.store.sqlite.disk import Disk
from sandbox_agent.store.sqlite.writer import Pace
from support.store_words import ANY, KEEP_ALL, KEY, read_all, session

STREAMS = [StreamKey(f"session:mock:{name}") for name in ("one", "two", "three")]
HOME = "/dev/shm" if Path("/dev/shm").is_dir() else None
FIRST_PAGE = 8192
LOST = "_sandboxagent/history/lost"


class FailingConnection(sqlite3.Connection):
    disk: FailingDisk

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        with self.disk.gate:
            cursor = self._execute(sql, *values)
        if sql == "COMMIT" and self.disk.random.random() < 0.5:
            time.sleep(0.004)  # much can happen between a commit and what follows it
        return cursor

    def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
        with self.disk.gate:
            return super().executemany(sql, *values)

    def _execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        word = sql.split(None, 1)[0]
        if self.disk.is_full and word in {"INSERT", "UPDATE", "DELETE", "COMMIT"}:
            raise sqlite3.OperationalError("database or disk is full")
        if self.disk.strikes():
            if word == "COMMIT" and self.disk.random.random() < 0.5:
                super().execute(sql)  # it has happened, and yet we are told that it has not
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *values)


class FailingDisk(Disk):
    """Full when it is told to be; beyond that it fails at a rate, and writes may stop in the middle."""

    def __init__(self, chance: random.Random) -> None:
        self.random = chance
        self.is_full = False
        self.rate = 0.0
        self.gate = threading.RLock()
        """Who holds it sees the files as a kill at this moment would leave them."""

    def strikes(self) -> bool:
        return self.rate > 0 and self.random.random() < self.rate

    def connect(self, target: str, *, is_uri: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            target, uri=is_uri, isolation_level=None, check_same_thread=False, factory=FailingConnection
        )
        connection.disk = self
        return connection

    def write(self, fd: int, content: bytes) -> int:  # type: ignore[override]
        with self.gate:
            return self._write(fd, content)

    def _write(self, fd: int, content: bytes) -> int:
        if not self.is_full and not self.strikes():
            return os.write(fd, content)
        part = self.random.randrange(len(content)) if self.random.random() < 0.5 else 0
        if part:
            os.write(fd, content[:part])
            if self.random.random() < 0.5:
                return part
        raise OSError(errno.ENOSPC if self.is_full else errno.EIO, "the simulated disk fails")

    def truncate(self, fd: int, size: int) -> None:
        with self.gate:
            if self.strikes():
                raise OSError(errno.EIO, "the simulated disk fails")
            os.ftruncate(fd, size)


class Life:
    """One seed's story."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
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
            for number in range(self.random.randint(2, 4)):
                await self._live(self.home / f"life{number}")
        finally:
            shutil.rmtree(self.home)

    async def _live(self, directory: Path) -> None:
        """From a start to a kill; the next life finds what was on disk then."""
        directory.mkdir(exist_ok=True)
        path = directory / "history.db"
        disk = FailingDisk(self.random)
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
            with disk.gate:
                shutil.copytree(directory, self.home / f"life{number}")  # a kill: memory is gone, the files are not
        finally:
            disk.rate, disk.is_full = 0.0, False
            await store.close()
        if self.random.random() < 0.4:
            self._damage(self.home / f"life{number}")

    async def _start(self, path: Path, disk: FailingDisk) -> SqliteStore:
        pace = Pace(linger=self.random.choice([0.0, 30.0]), longest_retry=0.01)
        memory = self.random.choice([6000, 1 << 20])
        store = SqliteStore(path, retention=KEEP_ALL, memory_bytes=memory, pace=pace, disk=disk)
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

    async def _step(self, store: SqliteStore, disk: FailingDisk) -> None:
        match self.random.randrange(12):
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
                await asyncio.sleep(self.random.choice([0, 0.001, 0.006]))
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


def simulate(seed: int) -> None:
    try:
        asyncio.run(Life(seed).run())
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


def simulate_for(seconds: float, first_seed: int) -> int:
    """How many lives were lived."""
    end = time.monotonic() + seconds
    seed = first_seed
    while time.monotonic() < end:
        simulate(seed)
        seed += 1
    return seed - first_seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 40))
    wanted = parser.parse_args()
    print(f"first seed {wanted.seed}")
    print(f"{simulate_for(wanted.seconds, wanted.seed)} lives")


if __name__ == "__main__":
    main()
