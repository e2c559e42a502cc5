"""How much of the disk the search index may take: it can be made anew, a history cannot."""

from __future__ import annotations

from pathlib import Path

from sandbox_agent.store.sqlite.disk import Disk

LEAST_BYTES = 8 * 1024 * 1024
"""What is left to the journal and the database in any case."""


class Room:
    """The index's files, and what is free beside them."""

    def __init__(self, index: Path, disk: Disk) -> None:
        self._files = [index.with_name(index.name + suffix) for suffix in ("", "-wal", "-shm")]
        self._disk = disk

    def may_grow(self) -> bool:
        """Whether as much as the index takes is free twice over."""
        return self._free() >= 2 * max(self._taken(), LEAST_BYTES)

    def is_short(self) -> bool:
        """Whether the history needs what the index takes."""
        return bool(taken := self._taken()) and self._free() < max(taken, LEAST_BYTES)

    def discard(self) -> None:
        """Raises OSError."""
        for file in self._files:
            file.unlink(missing_ok=True)

    def _taken(self) -> int:
        return sum(map(_size, self._files))

    def _free(self) -> int:
        return self._disk.free(self._files[0].parent)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
