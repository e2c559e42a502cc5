"""Disks with faults: one that can be filled up for real, and one on which statements fail."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox_agent.store.sqlite.disk import Disk


class SmallDisk:
    """`fill` leaves no room for a byte; `free` gives the room back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_full(self) -> bool:
        return (self.path / "ballast").exists()

    def fill(self) -> None:
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            for size in (65536, 4096, 1):
                try:
                    while ballast.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        (self.path / "ballast").unlink(missing_ok=True)


class LimitedDisk(SmallDisk):
    """For where nothing can be mounted: the system refuses to let files of this process grow."""

    def fill(self) -> None:
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, self._limits[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)


@contextmanager
def small_disk(path: Path, *, mebibytes: int = 16) -> Iterator[SmallDisk]:
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        yield LimitedDisk(path)
        return
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


class FailingDisk(Disk):
    """Each of `fails` fails once, when a statement begins with it; or always, where it `stays`."""

    def __init__(self) -> None:
        self.fails: list[str] = []
        self.stays = False

    def connect(self, target: str, *, is_uri: bool) -> sqlite3.Connection:
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                word = sql.split(None, 1)[0]
                if word in disk.fails:
                    if not disk.stays:
                        disk.fails.remove(word)
                    raise sqlite3.OperationalError("disk I/O error")
                return super().execute(sql, *values)

        return sqlite3.connect(target, uri=is_uri, isolation_level=None, check_same_thread=False, factory=Connection)
