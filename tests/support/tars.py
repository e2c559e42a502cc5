"""Builds tar archives byte by byte, so that tests can also build the ones no honest tool would write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

BLOCK = 512
END = bytes(2 * BLOCK)


def header(
    name: bytes | str,
    size: int | bytes = 0,
    *,
    kind: bytes = b"0",
    link: bytes | str = b"",
    mode: int = 0o644,
    mtime: int = 1_700_000_000,
    prefix: bytes = b"",
) -> bytes:
    raw = name.encode() if isinstance(name, str) else name
    raw_link = link.encode() if isinstance(link, str) else link
    raw_size = size if isinstance(size, bytes) else b"%011o\0" % size
    block = bytearray(BLOCK)
    block[0:100] = raw[:100].ljust(100, b"\0")
    block[100:108] = b"%07o\0" % mode
    block[108:124] = b"0000000\x000000000\0"
    block[124:136] = raw_size
    block[136:148] = b"%011o\0" % mtime
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[157:257] = raw_link[:100].ljust(100, b"\0")
    block[257:265] = b"ustar\x0000"
    block[345:500] = prefix.ljust(155, b"\0")
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % BLOCK)


def file(name: bytes | str, content: bytes = b"content", *, mode: int = 0o644, kind: bytes = b"0") -> bytes:
    return header(name, len(content), mode=mode, kind=kind) + padded(content)


def directory(name: str, *, mode: int = 0o755) -> bytes:
    return header(name, kind=b"5", mode=mode)


def symlink(name: str, target: bytes | str) -> bytes:
    return header(name, kind=b"2", link=target, mode=0o777)


def hardlink(name: str, target: str) -> bytes:
    return header(name, kind=b"1", link=target)


def pax(records: dict[str, bytes | str], *, kind: bytes = b"x") -> bytes:
    return file("PaxHeader", b"".join(_record(key, value) for key, value in records.items()), kind=kind)


def long_name(name: str, *, kind: bytes = b"L") -> bytes:
    return file("././@LongLink", name.encode() + b"\0", kind=kind)


def archive(*members: bytes) -> bytes:
    return b"".join(members) + END


async def stream(data: bytes, *, piece: int = 64 * 1024) -> AsyncIterator[bytes]:
    for start in range(0, len(data), piece):
        yield data[start : start + piece]


async def pieces(items: Iterable[bytes]) -> AsyncIterator[bytes]:
    for item in items:
        yield item


def snapshot(top: Path) -> dict[str, str | bytes]:
    """Every path beneath `top` with what it is or holds: two equal snapshots mean that nothing changed."""
    found: dict[str, str | bytes] = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = "directory"
        else:
            found[name] = path.read_bytes() if path.is_file() else "special"
    return found


def _record(key: str, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    body = b" " + key.encode() + b"=" + raw + b"\n"
    size = len(body) + 1
    while len(str(size)) + len(body) != size:
        size = len(str(size)) + len(body)
    return str(size).encode() + body
