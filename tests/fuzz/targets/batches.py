"""A row of the database is read as it was written, or is a DamagedRow; lines of any bytes come back."""

from __future__ import annotations

import zlib

from fuzz.pieces import pieces
from sandbox_agent.core.ids import StreamKey
from sandbox_agent.store.batches import DamagedRow, encode_lines, pack_rows, unpack_row
from sandbox_agent.store.operations import Append


def check(data: bytes) -> None:
    _check_foreign(data)
    _check_foreign(zlib.compress(data))
    _check_own(pieces(data, most=9))


def _check_foreign(body: bytes) -> None:
    """As the rows of earlier versions are: without a checksum."""
    try:
        for _, (time, source, lines) in unpack_row(1, 3, body, None):
            assert isinstance(time, float)
            assert source in {"client", "agent", "server"}
            assert all(isinstance(line, bytes) for line in lines)
    except DamagedRow:
        pass


def _check_own(lines: list[bytes]) -> None:
    stream = StreamKey("session:a:b")
    appends = [
        Append(number, stream, number, number, 1.0, encode_lines(1.0, "agent", [line]))
        for number, line in enumerate(lines, 1)
    ]
    found: list[tuple[int, bytes]] = []
    for row in pack_rows(appends):
        for sequence, (_, _, some) in unpack_row(row.first, row.last, row.body, row.checksum):
            found += enumerate(some, sequence)
        damaged = bytearray(row.body)
        damaged[len(lines[0]) % len(damaged)] ^= 1
        try:
            unpack_row(row.first, row.last, bytes(damaged), row.checksum)
        except DamagedRow:
            continue
        raise AssertionError("a flipped bit was not noticed")
    assert found == list(enumerate(lines, 1))
