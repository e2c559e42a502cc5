"""What the store does to its files, in one place: a simulation puts a disk in its place that fails."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


class Disk:
    open = staticmethod(os.open)
    write = staticmethod(os.write)
    truncate = staticmethod(os.ftruncate)

    def free(self, directory: Path) -> int:
        """Bytes that may still be written there."""
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize

    def connect(self, target: str, *, is_uri: bool) -> sqlite3.Connection:
        """One that commits when it is told to; it may be used by one thread at a time, whichever."""
        return sqlite3.connect(target, uri=is_uri, isolation_level=None, check_same_thread=False, timeout=5.0)


REAL = Disk()
