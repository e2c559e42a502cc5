"""Reads a tar stream (ustar, PAX, GNU long names) as it arrives, strictly, and tells a sink what is in it.

Nothing is written here. Names and links come out checked: relative, without `..`, within the tree.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from typing import NamedTuple, Protocol
from zlib import adler32

from sandbox_agent.archives.rules import MIB, ArchiveLimits, Parts, check_symlink, checked_name, clip, too_many
from sandbox_agent.errors import BadArchive, TooLarge

BLOCK = 512
MAX_EXTENSION_BYTES = MIB
_ZERO = bytes(BLOCK)
_MAX_SECONDS = 2**34


class Kind(Enum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symbolic link"
    HARDLINK = "hard link"


_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"5": Kind.DIRECTORY,
}
_REFUSED = {
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a FIFO",
    b"S": "a sparse file",
    b"M": "a part of a multi-volume archive",
}


class Member(NamedTuple):
    """One entry. `link` is a symbolic link's text, or the name of a hard link's file in the archive."""

    name: str
    parts: Parts
    kind: Kind
    size: int
    mode: int
    mtime_ns: int
    link: str


class Sink(Protocol):
    def begin(self, member: Member) -> None: ...

    def write(self, content: memoryview) -> None: ...

    def end(self) -> None: ...


class TarReader:
    """Push parser: `feed` what arrives, then `finish`. Of no use after it raised BadArchive or TooLarge."""

    def __init__(self, sink: Sink, limits: ArchiveLimits) -> None:
        self._sink = sink
        self._limits = limits
        self._rest = b""
        self._total = 0
        self._headers = 0
        self._left = 0
        self._padding = 0
        self._extension = b""
        self._collected = bytearray()
        self._pax: dict[str, str] = {}
        self._long_name: bytes | None = None
        self._long_link: bytes | None = None
        self._has_ended = False

    def feed(self, data: bytes) -> None:
        self._total += len(data)
        if self._total > self._limits.max_archive_bytes:
            raise TooLarge(
                f"the archive holds more than {self._limits.max_archive_bytes} bytes",
                limit=self._limits.max_archive_bytes,
            )
        if self._rest:
            data = self._rest + data
            self._rest = b""
        view = memoryview(data)
        position, size = 0, len(data)
        while position < size:
            if self._left:
                position += self._take(view[position : position + self._left])
            if self._padding and not self._left:
                skipped = min(self._padding, size - position)
                self._padding -= skipped
                position += skipped
            elif self._has_ended:
                if data.count(0, position) != size - position:
                    raise BadArchive("the archive has data behind its end")
                return
            elif size - position < BLOCK:
                self._rest = data[position:]
                return
            else:
                self._header(data[position : position + BLOCK])
                position += BLOCK

    def finish(self) -> None:
        if not self._has_ended:
            raise BadArchive("the archive is cut off: its end marker is missing")

    def _take(self, content: memoryview) -> int:
        count = len(content)
        self._left -= count
        if self._extension:
            self._collected += content
            if not self._left:
                self._end_extension()
        else:
            self._sink.write(content)
            if not self._left:
                self._sink.end()
        return count

    def _header(self, block: bytes) -> None:
        if block == _ZERO:
            if self._pax or self._long_name is not None or self._long_link is not None:
                raise BadArchive("the archive ends behind a header that announces another entry")
            self._has_ended = True
            return
        self._headers += 1
        if self._headers > self._limits.max_archive_entries:
            raise too_many(self._limits)
        checksum = block[148:156]
        if _byte_sum(block) - sum(checksum) + 256 != _octal(checksum):
            raise BadArchive(f"entry {self._headers} has a wrong checksum")
        kind = block[156:157]
        size = _number(block[124:136])
        if kind in (b"x", b"g", b"L", b"K"):
            self._begin_extension(kind, size)
        else:
            self._begin_member(block, kind, size)

    def _begin_extension(self, kind: bytes, size: int) -> None:
        if not 0 < size <= MAX_EXTENSION_BYTES:
            raise BadArchive(f"entry {self._headers} is an extension header of {size} bytes")
        self._extension = kind
        self._left = size
        self._padding = -size % BLOCK

    def _end_extension(self) -> None:
        kind, content = self._extension, bytes(self._collected)
        self._extension = b""
        self._collected.clear()
        if kind == b"L":
            self._long_name = content.rstrip(b"\0")
        elif kind == b"K":
            self._long_link = content.rstrip(b"\0")
        else:
            records = _pax_records(content)
            if kind == b"x":
                self._pax.update(records)
            elif not records.keys().isdisjoint(("path", "linkpath", "size")):
                raise BadArchive("a global header names a path, a link or a size for every entry")

    def _begin_member(self, block: bytes, kind: bytes, size: int) -> None:
        pax = self._pax
        raw_name = self._long_name if self._long_name is not None else _ustar_name(block)
        raw_link = self._long_link if self._long_link is not None else _text(block[157:257]) if block[157] else b""
        self._long_name = self._long_link = None
        name = pax["path"] if "path" in pax else _decode(raw_name)
        link = pax["linkpath"] if "linkpath" in pax else _decode(raw_link)
        mtime_ns = max(0, min(_signed_number(block[136:148]), _MAX_SECONDS)) * 10**9
        if pax:
            self._pax = {}
            if any(key.startswith("GNU.sparse.") for key in pax):
                raise BadArchive(f"{clip(name)} is a sparse file")
            size = _pax_size(pax, size)
            mtime_ns = _pax_time(pax, mtime_ns)
        member = self._checked(name, link, kind, size, _number(block[100:108]) & 0o777, mtime_ns)
        self._left = member.size
        self._padding = -member.size % BLOCK
        self._sink.begin(member)
        if not member.size:
            self._sink.end()

    def _checked(self, name: str, link: str, flag: bytes, size: int, mode: int, mtime_ns: int) -> Member:
        kind = _KINDS.get(flag)
        if kind is None:
            raise BadArchive(f"{clip(name)} is {_REFUSED.get(flag, f'an entry of unknown type {flag!a}')}")
        if kind is Kind.FILE and name.endswith("/"):
            kind = Kind.DIRECTORY  # how archives older than ustar tell directories
        parts = checked_name(name, self._limits)
        if not parts and kind is not Kind.DIRECTORY:
            raise BadArchive(f"{clip(name)} does not name anything in the archive")
        if kind is not Kind.FILE:
            size = 0 if kind is Kind.HARDLINK else size
            if size:
                raise BadArchive(f"{clip(name)} is a {kind.value} with content")
        if size > self._limits.max_member_bytes:
            raise TooLarge(
                f"{clip(name)} has {size} bytes; at most {self._limits.max_member_bytes} are allowed",
                limit=self._limits.max_member_bytes,
            )
        if kind is Kind.HARDLINK:
            link = "/".join(checked_name(link, self._limits))
        elif kind is Kind.SYMLINK:
            check_symlink(name, parts, link)
        return Member(name, parts, kind, size, mode, mtime_ns, link)


def _ustar_name(block: bytes) -> bytes:
    name = _text(block[:100])
    if block[345] and block[257:263] == b"ustar\0":
        prefix = _text(block[345:500])
        if prefix:
            return prefix + b"/" + name
    return name


def _text(field: bytes) -> bytes:
    return field.split(b"\0", 1)[0]


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadArchive(f"the entry name {raw[:200]!a} is not valid UTF-8") from None


def _byte_sum(block: bytes) -> int:
    """As `sum` gives it, in a tenth of the time: Adler-32 begins with 1 + the sum, modulo more than 256 bytes reach."""
    return (adler32(block[:256]) & 0xFFFF) + (adler32(block[256:]) & 0xFFFF) - 2


def _number(field: bytes) -> int:
    value = _signed_number(field)
    if value < 0:
        raise BadArchive(f"a header has the negative number {value}")
    return value


@lru_cache(maxsize=1024)
def _signed_number(field: bytes) -> int:
    """A numeric field: octal digits, or GNU's base 256 for what octal cannot hold. Modes and times repeat."""
    if field[0] in (0x80, 0xFF):
        value = int.from_bytes(field[1:], "big", signed=False)
        return value - 256 ** (len(field) - 1) if field[0] == 0xFF else value
    return _octal(field)


def _octal(field: bytes) -> int:
    digits = field.split(b"\0", 1)[0].strip()
    if not digits:
        return 0
    if digits.strip(b"01234567"):
        raise BadArchive(f"a header has {field!a} where a number belongs")
    return int(digits, 8)


def _pax_records(content: bytes) -> dict[str, str]:
    records: dict[str, str] = {}
    position = 0
    while position < len(content):
        space = content.find(b" ", position, position + 10)
        digits = content[position:space] if space > 0 else b""
        if not digits.isdigit():
            raise BadArchive("a PAX header is malformed")
        end = position + int(digits)
        key, equals, value = content[space + 1 : end - 1].partition(b"=")
        if end > len(content) or not equals or content[end - 1 : end] != b"\n":
            raise BadArchive("a PAX header is malformed")
        if key in (b"path", b"linkpath", b"size", b"mtime") or key.startswith(b"GNU.sparse."):
            records[_decode(key)] = _decode(value)
        position = end
    return records


def _pax_size(pax: dict[str, str], size: int) -> int:
    text = pax.get("size")
    if text is None:
        return size
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise BadArchive(f"a PAX header has the size {clip(text)}")
    return int(text)


def _pax_time(pax: dict[str, str], mtime_ns: int) -> int:
    text = pax.get("mtime")
    if text is None:
        return mtime_ns
    try:
        seconds = Decimal(text)
    except InvalidOperation:
        raise BadArchive(f"a PAX header has the time {clip(text)}") from None
    if not seconds.is_finite():
        raise BadArchive(f"a PAX header has the time {clip(text)}")
    return int(max(Decimal(0), min(seconds, Decimal(_MAX_SECONDS))) * 10**9)
