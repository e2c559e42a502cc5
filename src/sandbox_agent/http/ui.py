"""The inspector at `/ui/`: files that were built beforehand, read once, served with a strict policy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from sandbox_agent.core.users import Right
from sandbox_agent.errors import NotFound
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Headers, Receive, Scope, Send, send_response, send_whole
from sandbox_agent.http.asgi.problems import problem_response
from sandbox_agent.http.asgi.routes import Endpoint

PREFIX = "/ui/"
PATHS = ("/", "/ui", "/ui/", "/ui/{file}", "/ui/assets/{file}")
BUILT = Path(__file__).parent / "ui_assets"

_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDS: Headers = [  # beside those that every answer of the server carries
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_FOREVER = b"public, max-age=31536000, immutable"
_ASK_AGAIN = b"no-cache"


class Asset(msgspec.Struct, frozen=True):
    body: bytes
    packed: bytes
    content_type: bytes
    cache: bytes
    etag: bytes


class Ui:
    """Raw ASGI for `/ui` and everything below, to which `/` leads.

    What is not in the table that is read at first use does not exist."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder
        self._assets: dict[str, Asset] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path") or "")
        if path in ("", "/", PREFIX.rstrip("/")):
            await _send(send, scope, 308, b"", [(b"location", b"ui/")])  # relative: a base path in front of us stays
            return
        asset = self._table().get(path.removeprefix(PREFIX) or "index.html")
        if asset is None:
            missing = problem_response(NotFound(f"no such file in the inspector: {path!r}"), instance=scope["path"])
            await send_response(missing.adding(*_GUARDS), scope, send)
            return
        headers: Headers = [(b"etag", asset.etag), (b"cache-control", asset.cache), (b"vary", b"accept-encoding")]
        if _header(scope, b"if-none-match") == asset.etag:
            await _send(send, scope, 304, b"", headers)
        elif b"gzip" in _header(scope, b"accept-encoding"):
            packed: Headers = [*headers, (b"content-encoding", b"gzip")]
            await _send(send, scope, 200, asset.packed, packed, asset.content_type)
        else:
            await _send(send, scope, 200, asset.body, headers, asset.content_type)

    def _table(self) -> dict[str, Asset]:
        if self._assets is None:
            self._assets = dict(_read(self._folder))
        return self._assets


def ui_routes(ui: Ui) -> list[Endpoint]:
    """Pages, so that a link from elsewhere may lead here."""

    async def serve(exchange: Exchange) -> None:
        await ui(exchange.scope, exchange.receive, exchange.send)

    return [Endpoint("GET", path, serve, None, is_page=True, needs=Right.READ) for path in PATHS]


def _read(folder: Path) -> Iterator[tuple[str, Asset]]:
    for file in sorted(folder.rglob("*")):
        content_type = _TYPES.get(file.suffix)
        if content_type is None or not file.is_file():
            continue
        name = file.relative_to(folder).as_posix()
        body = file.read_bytes()
        is_hashed = name.startswith("assets/")
        etag = f'"{sha256(body).hexdigest()[:32]}"'.encode()
        yield name, Asset(body, _gzip(body), content_type, _FOREVER if is_hashed else _ASK_AGAIN, etag)


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, 9, wbits=16 + zlib.MAX_WBITS)


async def _send(
    send: Send, scope: Scope, status: int, body: bytes, headers: Headers, content_type: bytes | None = None
) -> None:
    every = [*_GUARDS, *headers]
    if scope["method"] != "HEAD":
        await send_whole(send, status, body, content_type, every)
        return
    every += [(b"content-length", b"%d" % len(body)), *([(b"content-type", content_type)] if content_type else [])]
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": b""})


def _header(scope: Scope, name: bytes) -> bytes:
    return b",".join(value for key, value in scope["headers"] if key == name)
