"""Entries in bulk: many lines in one value, as the journal and the database keep them.

A body is msgpack of `[time, source, [line, …]]`; a row of the database is zlib over a msgpack list of bodies.
Joining bodies needs no second encoding.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from sandbox_agent.store.base import Source
from sandbox_agent.store.entries import lost_notice
from sandbox_agent.store.operations import Append

ROW_BYTES = 256 * 1024
"""A row is closed before it grows past this, before compression."""

_Body = tuple[float, Source, list[bytes]]
_encode = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(_Body).decode
_decode_row = msgspec.msgpack.Decoder(list[_Body]).decode


class DamagedRow(Exception):
    """The row's bytes are not those that were written."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """Consecutive appends of one stream."""

    first: int
    last: int
    began: float
    ended: float
    body: bytes

    @property
    def checksum(self) -> int:
        return row_checksum(self.first, self.last, self.body)


def encode_lines(time: float, source: Source, lines: Sequence[bytes]) -> bytes:
    return _encode((time, source, lines))


def encode_loss(time: float, first: int, last: int, reason: str) -> bytes:
    return encode_lines(time, "server", [lost_notice(first, last, reason)])


def row_checksum(first: int, last: int, body: bytes) -> int:
    """Over the place as well: a row that got another's numbers is as wrong as one that got another's bytes."""
    return zlib.crc32(body, zlib.crc32(b"%d-%d" % (first, last)))


def pack_rows(appends: Iterable[Append]) -> Iterator[Row]:
    """Join appends of one stream, in order, to rows. A notice of loss gets a row of its own."""
    open_row: list[Append] = []
    size = 0
    for append in appends:
        if open_row and (append.is_loss or open_row[0].is_loss or size + len(append.body) > ROW_BYTES):
            yield _pack(open_row)
            open_row, size = [], 0
        open_row.append(append)
        size += len(append.body)
    if open_row:
        yield _pack(open_row)


def unpack_row(first: int, last: int, body: bytes | None, checksum: int | None) -> Iterator[tuple[int, _Body]]:
    """Each body of a row with the sequence of its first line. Raises DamagedRow.

    Rows of earlier versions have no checksum; a ruined page may leave nothing of a row."""
    if body is None or not isinstance(first, int) or not isinstance(last, int):
        raise DamagedRow("it is empty")
    if checksum is not None and row_checksum(first, last, body) != checksum:
        raise DamagedRow("wrong checksum")
    try:
        bodies = _inflate(body)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedRow(str(error)) from error
    sequence = last + 1 - sum(len(lines) for _, _, lines in bodies)
    return _numbered(sequence, bodies)


def unpack_append(append: Append) -> tuple[int, _Body]:
    body = _decode_body(append.body)
    return append.last + 1 - len(body[2]), body


def _numbered(sequence: int, bodies: list[_Body]) -> Iterator[tuple[int, _Body]]:
    for body in bodies:
        yield sequence, body
        sequence += len(body[2])


def _pack(appends: list[Append]) -> Row:
    bodies = [append.body for append in appends]
    packed = zlib.compress(b"".join([_array_header(len(bodies)), *bodies]), 1)
    times = [append.time for append in appends]
    return Row(appends[0].first, appends[-1].last, min(times), max(times), packed)


@lru_cache(maxsize=8)
def _inflate(body: bytes) -> list[_Body]:
    # Cached for readers that take a row in small pages. Nobody changes the lists.
    return _decode_row(zlib.decompress(body))


def _array_header(length: int) -> bytes:
    return struct.pack(">BI", 0xDD, length)
