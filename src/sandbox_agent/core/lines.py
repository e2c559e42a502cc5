"""Bytes in, complete lines out, with a cap on how long a line may grow."""

from __future__ import annotations

import hashlib

import msgspec

_CARRIAGE_RETURN = ord("\r")


class OversizedLine(msgspec.Struct, frozen=True):
    """Stands where a line was dropped because it was longer than the cap."""

    size: int
    sha256: str


class LineSplitter:
    """Splits a byte stream at LF. A trailing CR and empty lines are dropped; a line past the cap is not kept."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0
        self._dropped: _Dropped | None = None

    @property
    def pending(self) -> int:
        """Bytes held of the line that has not ended yet."""
        return self._size

    def feed(self, chunk: bytes) -> list[bytes | OversizedLine]:
        """The lines that end in `chunk`, in order."""
        whole = chunk.split(b"\n")
        tail = whole.pop()
        is_plain = len(chunk) <= self._cap and _CARRIAGE_RETURN not in chunk and b"" not in whole
        lines: list[bytes | OversizedLine] = whole  # type: ignore[assignment]  # nobody else has the list
        if whole and (self._parts or self._dropped is not None):
            self._grow(whole[0])
            lines[0] = self._take()
            is_plain = is_plain and _is_plain(lines[0])
        if tail:
            self._grow(tail)
        return lines if is_plain else [line for line in map(self._checked, lines) if line]

    def finish(self) -> list[bytes | OversizedLine]:
        """What is left at end of stream: the last line, if it was not ended by LF."""
        line = self._checked(self._take())
        return [line] if line else []

    def _grow(self, part: bytes) -> None:
        if self._dropped is not None:
            self._dropped.add(part)
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._cap:
            self._dropped = _Dropped()
            for held in self._parts:
                self._dropped.add(held)
            self._parts, self._size = [], 0

    def _take(self) -> bytes | OversizedLine:
        if self._dropped is not None:
            dropped, self._dropped = self._dropped, None
            return dropped.described()
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size = [], 0
        return line

    def _checked(self, line: bytes | OversizedLine) -> bytes | OversizedLine:
        if isinstance(line, OversizedLine):
            return line
        if len(line) > self._cap:
            return OversizedLine(len(line), hashlib.sha256(line).hexdigest())
        return line[:-1] if line.endswith(b"\r") else line


def _is_plain(line: bytes | OversizedLine) -> bool:
    """Whether the line, which may have begun in an earlier chunk, needs no second look."""
    return isinstance(line, bytes) and not line.endswith(b"\r")


class _Dropped:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._size = 0

    def add(self, part: bytes) -> None:
        self._hash.update(part)
        self._size += len(part)

    def described(self) -> OversizedLine:
        return OversizedLine(self._size, self._hash.hexdigest())
