"""A file as an HTTP response: whole or one range, with ETag, never all in memory."""

from __future__ import annotations

import re
from email.utils import formatdate
from urllib.parse import quote

import msgspec

from sandbox_agent.errors import RangeNotSatisfiable
from sandbox_agent.files import OpenFile
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Headers, send_response
from sandbox_agent.http.asgi.problems import problem_response

_CHUNK = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")


class Part(msgspec.Struct, frozen=True):
    start: int
    length: int


def wanted_part(range_header: str | None, size: int) -> Part | None:
    """The range that is asked for; None for the whole file, also when we cannot serve what is asked.

    Raises RangeNotSatisfiable for a range that lies beyond the end."""
    match = _RANGE.match((range_header or "").replace(" ", ""))
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        length = min(int(last), size)
        if length == 0:
            raise RangeNotSatisfiable(f"the range is empty; the file has {size} bytes")
        return Part(size - length, length)
    start, end = int(first), min(int(last) if last else size - 1, size - 1)
    if last and int(last) < start:
        return None
    if start >= size:
        raise RangeNotSatisfiable(f"the range starts at {start}, the file has {size} bytes")
    return Part(start, end - start + 1)


async def send_file(exchange: Exchange, file: OpenFile) -> None:
    headers: Headers = [
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", _attachment(file.path)),
        (b"etag", file.etag.encode()),
        (b"accept-ranges", b"bytes"),
        (b"cache-control", b"no-cache"),
    ]
    if file.modified is not None and file.mtime >= 0:
        headers.append((b"last-modified", formatdate(file.mtime, usegmt=True).encode()))
    if _is_known(exchange.header(b"if-none-match"), file.etag):
        await exchange.send({"type": "http.response.start", "status": 304, "headers": headers[2:]})
        await exchange.send({"type": "http.response.body", "body": b""})
        return
    condition = exchange.header(b"if-range")
    asked = exchange.header(b"range") if condition is None or condition.strip() == file.etag else None
    try:
        part = wanted_part(asked, file.size)
    except RangeNotSatisfiable as error:
        problem = problem_response(error, instance=exchange.scope["path"])
        extent = (b"content-range", b"bytes */%d" % file.size)
        await send_response(problem.adding(extent), exchange.scope, exchange.send)
        return
    if part is not None:
        span = b"bytes %d-%d/%d" % (part.start, part.start + part.length - 1, file.size)
        headers.append((b"content-range", span))
    whole = Part(0, file.size)
    headers.append((b"content-length", b"%d" % (part or whole).length))
    status = 200 if part is None else 206
    await exchange.send({"type": "http.response.start", "status": status, "headers": headers})
    await _send_body(exchange, file, part or whole, is_whole=part is None)


async def _send_body(exchange: Exchange, file: OpenFile, part: Part, *, is_whole: bool) -> None:
    if exchange.is_head:
        await exchange.send({"type": "http.response.body", "body": b""})
    elif is_whole and "http.response.pathsend" in exchange.scope.get("extensions", {}):
        await exchange.send({"type": "http.response.pathsend", "path": file.send_path})
    else:
        async for chunk in file.chunks(part.start, part.length, chunk=_CHUNK):
            await exchange.send({"type": "http.response.body", "body": chunk, "more_body": True})
        await exchange.send({"type": "http.response.body", "body": b""})


def _is_known(if_none_match: str | None, etag: str) -> bool:
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags


def _attachment(path: str) -> bytes:
    """A browser saves it rather than shows it: what is in a sandbox is not to be trusted."""
    name = path.rsplit("/", 1)[-1]
    return f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}".encode()
