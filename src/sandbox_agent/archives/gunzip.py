"""Decompresses gzip as it arrives, and gives up on bombs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from sandbox_agent.archives.rules import KIB, MIB, ArchiveLimits
from sandbox_agent.errors import BadArchive, TooLarge

MAGIC = b"\x1f\x8b"
_SLICE = 16 * KIB  # what one call sees: a gzip of thousands of empty members would be copied for each of them
_WINDOW = 31  # zlib's way to say: gzip, with header, checksum and length verified


class Gunzip:
    """`feed` yields what came out, a MiB at most each time; gzip members in a row make one stream."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._engine = zlib.decompressobj(_WINDOW)
        self._has_begun = False
        self._in = 0
        self._taken = 0
        self._out = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._in += len(data)
        if self._in > self._limits.max_archive_bytes:
            raise TooLarge(f"the archive has more than {self._limits.max_archive_bytes} compressed bytes")
        for start in range(0, len(data), _SLICE):
            yield from self._inflate(data[start : start + _SLICE])

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        self._taken += len(data)
        has_more = False
        while data or has_more:
            if self._engine.eof:
                data = data.lstrip(b"\0")  # tapes and block devices pad with zeros
                if not data:
                    return
                self._engine = zlib.decompressobj(_WINDOW)
                self._has_begun = False
            try:
                piece = self._engine.decompress(data, MIB)
            except zlib.error as error:
                raise BadArchive(f"the archive is not sound gzip: {error}") from None
            self._has_begun = True
            data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
            has_more = len(piece) == MIB
            self._out += len(piece)
            self._check_ratio(self._taken - len(data))
            if piece:
                yield piece

    def finish(self) -> None:
        if self._has_begun and not self._engine.eof:
            raise BadArchive("the archive is cut off in the middle of its gzip data")

    def _check_ratio(self, consumed: int) -> None:
        limits = self._limits
        if self._out > limits.gzip_ratio_after and self._out > limits.max_gzip_ratio * consumed:
            raise TooLarge(
                f"the archive grows more than {limits.max_gzip_ratio} times when it is decompressed",
                limit=limits.max_gzip_ratio,
            )
