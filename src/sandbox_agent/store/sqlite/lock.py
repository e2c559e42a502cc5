"""One server per database: a lock file beside it that names its holder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from sandbox_agent.errors import StoreError


class DatabaseLock:
    """Held from `acquire` to `release`, and let go by the system when the process dies."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}.lock")
        self._database = database
        self._fd: int | None = None

    def acquire(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot create the lock file {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise StoreError(
                f"the history database {self._database} is in use by another server (pid {holder}); "
                "stop it, or give this one another data directory",
                pid=holder,
            ) from error
        self._fd = fd
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass  # a full disk: the lock holds all the same, only nameless

    def release(self) -> None:
        # The file stays: removing it would let two servers lock two files of one name.
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
