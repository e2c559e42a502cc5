"""What the file operations answer, as it goes over the wire."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from typing import Literal

import msgspec

EntryType = Literal["file", "directory"]


class FsEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    path: str
    entry_type: EntryType
    size: int
    modified: str | None


class FsStat(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    path: str
    entry_type: EntryType
    size: int
    modified: str | None


class FsWriteResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    path: str
    bytes_written: int


class FsActionResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    path: str


class FsMoveResult(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    from_: str
    to: str


class FsUploadResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    paths: list[str]
    truncated: bool


def entry_type(status: os.stat_result) -> EntryType:
    return "directory" if stat.S_ISDIR(status.st_mode) else "file"


def modified(status: os.stat_result) -> str | None:
    """The modification time in UTC, or None where the disk holds one that no calendar has."""
    try:
        moment = datetime.fromtimestamp(status.st_mtime, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def printable(name: str) -> str:
    """A file name that JSON can carry: bytes that are not UTF-8 become U+FFFD."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "replace")
