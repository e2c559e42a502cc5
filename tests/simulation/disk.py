"""A disk that fills up, fails and tears; and what a power cut or a flipped bit leaves of its files."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

from sandbox_agent.store.sqlite.disk import Disk

HOME = "/dev/shm" if Path("/dev/shm").is_dir() else None
_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "COMMIT"})


class SimulatedDisk(Disk):
    """Full when it is told to be; beyond that it fails at a rate or just once, and writes may stop in the middle.

    The files are real ones (in memory, where there is such a place), and so is SQLite: its statements fail as they
    would if the system had refused them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.is_full = False
        self.rate = 0.0
        self.stumbles_in = 0
        """After how many more calls it fails once; 0: not at all."""

    @property
    def is_well(self) -> bool:
        return not self.is_full and self.rate == 0 and self.stumbles_in == 0

    def heal(self) -> None:
        self.is_full, self.rate, self.stumbles_in = False, 0.0, 0

    def strikes(self) -> bool:
        if self.stumbles_in:
            self.stumbles_in -= 1
            return self.stumbles_in == 0
        return self.rate > 0 and self.chance.random() < self.rate

    def connect(self, target: str, *, is_uri: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            target, uri=is_uri, isolation_level=None, check_same_thread=False, factory=_Connection
        )
        connection.disk = self
        return connection

    def write(self, fd: int, content: bytes) -> int:  # type: ignore[override]
        if not self.is_full and not self.strikes():
            return os.write(fd, content)
        part = self.chance.randrange(len(content)) if self.chance.random() < 0.5 else 0
        if part:
            os.write(fd, content[:part])
            if self.chance.random() < 0.5:
                return part
        raise OSError(errno.ENOSPC if self.is_full else errno.EIO, "the simulated disk fails")

    def truncate(self, fd: int, size: int) -> None:
        if self.strikes():
            raise OSError(errno.EIO, "the simulated disk fails")
        os.ftruncate(fd, size)


class _Connection(sqlite3.Connection):
    disk: SimulatedDisk

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        word = sql.split(None, 1)[0]
        if self.disk.is_full and word in _WRITES:
            raise sqlite3.OperationalError("database or disk is full")
        if self.disk.strikes():
            if word == "COMMIT" and self.disk.chance.random() < 0.5:
                super().execute(sql)  # it has happened, and yet we are told that it has not
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *values)


def after_a_kill(directory: Path, target: Path) -> None:
    """What the next process finds: all that was written, since the page cache outlives us."""
    shutil.copytree(directory, target)


def cut_power(directory: Path, chance: Random) -> None:
    """Nothing was synced: the ends of what was written last are not there."""
    for file in sorted(directory.iterdir()):
        if (".journal." in file.name or file.name.endswith("-wal")) and file.stat().st_size:
            os.truncate(file, chance.randint(0, file.stat().st_size))


def flip_a_bit(directory: Path, chance: Random) -> None:
    kept = (file for file in directory.iterdir() if not file.name.endswith((".lock", "-shm")))
    files = sorted(file for file in kept if file.stat().st_size)
    if not files:
        return
    file = chance.choice(files)
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
