"""What a failing machine does to the files of a store whose server was killed, each at a random place."""

from __future__ import annotations

import random
import struct
from enum import StrEnum
from pathlib import Path

_WAL_HEADER = 32
_FRAME_HEADER = 24
_BACKFILLED = 128
"""Where the WAL's index says how many frames a checkpoint has begun to copy: those were synced before."""


class Damage(StrEnum):
    NONE = "kill -9 alone"
    TORN = "a write cut short"
    CUT = "journal's end cut off"
    FLIPPED = "journal with a flipped bit"
    WAL = "WAL's end cut off"


def inflict(damage: Damage, database: Path, choice: random.Random) -> bool:
    """Whether there was anything to damage."""
    match damage:
        case Damage.NONE:
            return True
        case Damage.TORN:
            return _tear(database, choice)
        case Damage.CUT:
            return _cut(_journal(database), choice)
        case Damage.FLIPPED:
            return _flip(_journal(database), choice)
        case Damage.WAL:
            return _cut_wal(database, choice)


def _journal(database: Path) -> Path:
    """The part that was written to last."""
    parts = [database.with_name(f"{database.name}.journal.{index}") for index in (0, 1)]
    return max(parts, key=lambda part: (part.stat().st_size > 0, part.stat().st_mtime_ns))


def _tear(database: Path, choice: random.Random) -> bool:
    """The beginning of one more record, of which nobody was told since its write has not returned."""
    journal = _journal(database)
    content = journal.read_bytes()
    if not content:
        return False
    (length,) = struct.unpack_from("<I", content, 4)
    record = content[: 16 + length]
    with journal.open("ab") as file:
        file.write(record[: choice.randrange(1, len(record))])
    return True


def _cut(path: Path, choice: random.Random) -> bool:
    size = path.stat().st_size
    if not size:
        return False
    with path.open("r+b") as file:
        file.truncate(choice.randrange(max(0, size - 64 * 1024), size))
    return True


def _flip(path: Path, choice: random.Random) -> bool:
    content = bytearray(path.read_bytes())
    if not content:
        return False
    content[choice.randrange(len(content))] ^= 1 << choice.randrange(8)
    path.write_bytes(content)
    return True


def _cut_wal(database: Path, choice: random.Random) -> bool:
    """Not before what a checkpoint has synced: no machine loses that and keeps what came after."""
    wal = database.with_name(f"{database.name}-wal")
    index = database.with_name(f"{database.name}-shm")
    if not wal.exists() or not index.exists() or wal.stat().st_size <= _WAL_HEADER:
        return False
    (page_size,) = struct.unpack(">I", wal.read_bytes()[8:12])
    (synced,) = struct.unpack_from("=I", index.read_bytes(), _BACKFILLED)
    first, size = _WAL_HEADER + synced * (_FRAME_HEADER + page_size), wal.stat().st_size
    if first >= size:
        return False
    with wal.open("r+b") as file:
        file.truncate(choice.randrange(first, size))
    return True
