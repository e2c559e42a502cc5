"""Copying all sessions from one store to another, row by row, so that times and sequences stay what they are.

A copy that was broken off goes on where it was when it is started again: what the target has of a session must be the
beginning of what the source has. Every session is read back from the target and compared before it counts as copied.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from sandbox_agent.core.ids import SessionKey
from sandbox_agent.errors import StoreError
from sandbox_agent.store.batches import Row, row_checksum
from sandbox_agent.store.records import DamagedRecord

_ROWS = 32
"""Rows that are copied in one transaction: each has up to a quarter of a MiB, before compression."""

Progress = Callable[[int, int], None]
Turns = list[tuple[str, bytes | None]]


class Side(Protocol):
    """One of the two stores, which nobody else uses meanwhile."""

    name: str

    async def size(self) -> int:
        """The bytes of all histories."""

    async def sessions(self) -> list[SessionKey]: ...

    async def last(self, key: SessionKey) -> int:
        """The newest entry, even if retention has removed it."""

    async def rows(self, key: SessionKey, *, after: int, limit: int) -> list[Row]: ...

    async def record(self, key: SessionKey) -> bytes | None: ...

    async def turns(self, key: SessionKey) -> Turns:
        """In the order of their names."""

    async def add_rows(self, key: SessionKey, rows: list[Row]) -> None:
        """In one transaction; they follow those that are there."""

    async def finish(self, key: SessionKey, record: bytes, turns: Turns, last: int) -> None:
        """In one transaction: all but the history."""


class Copied(msgspec.Struct, frozen=True, rename="camel"):
    """`entries` and `bytes` are those of the histories that were copied now; `skipped` sessions were there already."""

    sessions: int
    skipped: int
    entries: int
    bytes: int
    turns: int


class _Sum(NamedTuple):
    """Counts and a checksum over all that there is of a session, from the bytes themselves."""

    last: int
    rows: int
    size: int
    history: int
    record: int | None
    turns: int


async def copy_all(source: Side, target: Side, progress: Progress) -> Copied:
    """Raises StoreError when something cannot be read, or is not in the target what it is in the source."""
    total, done = await source.size(), 0
    sessions = skipped = entries = size = turns = 0
    for key in await source.sessions():
        wanted = await _sum(source, key)
        found = await _sum(target, key)
        if found == wanted:
            skipped += 1
        else:
            copied = await _copy_history(source, target, key, found)
            kept = await source.turns(key)
            await target.finish(key, await source.record(key) or b"", kept, wanted.last)
            if await _sum(target, key) != wanted:
                where = f"session {key.session!r} of agent {key.agent!r}"
                raise StoreError(f"{where} is not the same in {target.name} as in {source.name}: start the copy again")
            sessions, turns = sessions + 1, turns + len(kept)
            entries, size = entries + copied[0], size + copied[1]
        done += wanted.size
        progress(done, total)
    return Copied(sessions, skipped, entries, size, turns)


async def _copy_history(source: Side, target: Side, key: SessionKey, found: _Sum) -> tuple[int, int]:
    """Copy the rows that are missing; gives the number of their entries and their size."""
    begun = await _newest_row(target, key)
    if (begun or found.last) and await _history(source, key, until=begun) != found.history:
        raise StoreError(
            f"{target.name} has another history of session {key.session!r} of agent {key.agent!r}: "
            "delete the session there, or copy to an empty store"
        )
    entries = size = 0
    after = begun
    while rows := await source.rows(key, after=after, limit=_ROWS):
        await target.add_rows(key, rows)
        entries += sum(row.last - row.first + 1 for row in rows)
        size += sum(len(row.body) for row in rows)
        after = rows[-1].last
    return entries, size


async def _newest_row(side: Side, key: SessionKey) -> int:
    after = 0
    while rows := await side.rows(key, after=after, limit=_ROWS):
        after = rows[-1].last
    return after


async def _history(side: Side, key: SessionKey, *, until: int) -> int:
    """A checksum over the rows up to an entry."""
    checksum, after = 0, 0
    while after < until and (rows := await side.rows(key, after=after, limit=_ROWS)):
        for row in rows:
            if row.last <= until:
                checksum = zlib.crc32(b"%d" % row_checksum(row.first, row.last, row.body), checksum)
        after = rows[-1].last
    return checksum


async def _sum(side: Side, key: SessionKey) -> _Sum:
    history = count = size = after = 0
    while rows := await side.rows(key, after=after, limit=_ROWS):
        for row in rows:
            history = zlib.crc32(b"%d" % row_checksum(row.first, row.last, row.body), history)
            size += len(row.body)
        count += len(rows)
        after = rows[-1].last
    try:
        record = await side.record(key)
    except DamagedRecord as error:
        raise StoreError(f"the record of session {key.session!r} in {side.name} is damaged: {error}") from error
    turns = 0
    for turn in await side.turns(key):
        turns = zlib.crc32(msgspec.msgpack.encode(turn), turns)
    return _Sum(await side.last(key), count, size, history, None if record is None else zlib.crc32(record), turns)
