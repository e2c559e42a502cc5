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
from sandbox_agent.store.sqlite.operations import Append

ROW_BYTES = 256 * 1024
"""A row is closed before it grows past this, before compression."""

_Body = tuple[float, Source, list[bytes]]
_encode = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(_Body).decode
_decode_row = msgspec.msgpack.Decoder(list[_Body]).decode


class Row(msgspec.Struct, frozen=True, gc=False):
    """Consecutive appends of one stream."""

    first: int
    last: int
    began: float
    ended: float
    body: bytes


def encode_lines(time: float, source: Source, lines: Sequence[bytes]) -> bytes:
    return _encode((time, source, lines))


def encode_loss(time: float, first: int, last: int, reason: str) -> bytes:
    return encode_lines(time, "server", [lost_notice(first, last, reason)])


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


def unpack_row(last: int, body: bytes) -> Iterator[tuple[int, _Body]]:
    """Each body of a row with the sequence of its first line."""
    bodies = _inflate(body)
    sequence = last + 1 - sum(len(lines) for _, _, lines in bodies)
    for unpacked in bodies:
        yield sequence, unpacked
        sequence += len(unpacked[2])


def unpack_append(append: Append) -> tuple[int, _Body]:
    body = _decode_body(append.body)
    return append.last + 1 - len(body[2]), body


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
