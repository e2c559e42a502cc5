"""A disk that can be filled up and emptied again, for real."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SmallDisk:
    """`fill` leaves no room for a byte; `free` gives the room back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            for size in (65536, 4096, 1):
                try:
                    while ballast.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        (self.path / "ballast").unlink()


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
