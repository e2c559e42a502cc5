"""Which names we answer to, and which web pages may use us."""

from __future__ import annotations

import ipaddress
import re

import msgspec

from sandbox_agent.errors import ConfigError
from sandbox_agent.http.asgi.messages import Headers

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_HEADERS = (
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "Prefer",
    "Range",
    "X-ACP-Connection-Id",
    "Acp-Connection-Id",
    "Acp-Session-Id",
    "X-Opencode-Directory",
    "X-Opencode-Workspace",
    "X-Opencode-Ticket",
)
_EXPOSED = b", ".join(
    b"X-ACP-Connection-Id X-ACP-Last-Event-Id Acp-Connection-Id Acp-Session-Id ETag Content-Range "
    b"Accept-Ranges Retry-After X-Next-Cursor".split()
)
_PREFLIGHT_SECONDS = b"600"
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?\Z")
_REMEMBERED = 256


class HostNames:
    """Decides about Host headers, so that no other name can be pointed at us by its owner's DNS.

    A number cannot be pointed anywhere: on loopback its own numbers are fine, elsewhere any. `is_any_name` takes
    every well-formed name: right where the token protects and a proxy's name is not ours to know."""

    def __init__(self, allowed: tuple[str, ...], *, is_loopback: bool, is_any_name: bool) -> None:
        self._names = frozenset(name.lower() for name in allowed) | {"localhost"}
        self._is_loopback = is_loopback
        self._is_any_name = is_any_name
        self._known: dict[bytes, bool] = {}

    def is_ours(self, host: bytes) -> bool:
        known = self._known.get(host)
        if known is None:
            known = self._decide(host)
            if len(self._known) < _REMEMBERED:
                self._known[host] = known
        return known

    def _decide(self, host: bytes) -> bool:
        try:
            name, port = _split(host.decode("ascii").lower())
        except ValueError:
            return False
        if port and not (port.isdigit() and len(port) <= 5):
            return False
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in self._names or (self._is_any_name and _NAME.match(name) is not None)
        return address.is_loopback or not self._is_loopback or name in self._names


def _split(host: str) -> tuple[str, str]:
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ValueError(host)
        return name, port[1:]
    name, colon, port = host.partition(":")
    if colon and not port:
        raise ValueError(host)
    return name, port


def is_own_origin(origin: bytes, host: bytes) -> bool:
    """Whether a page with this Origin came from us. The scheme may differ: a proxy may speak TLS for us."""
    scheme, _, rest = origin.partition(b"://")
    if scheme not in {b"http", b"https"}:
        return False
    default = b":443" if scheme == b"https" else b":80"
    return rest == host or rest == host.removesuffix(default)


class Cors(msgspec.Struct, frozen=True):
    """The pages of other origins that may use us. Off when there are none."""

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    allows_credentials: bool = False

    def check(self) -> None:
        """Raises ConfigError for what browsers would refuse, or what would let everybody in."""
        if "*" in self.origins and self.allows_credentials:
            raise ConfigError("cors_allow_origin * cannot be used together with cors_allow_credentials")
        for origin in self.origins:
            if origin != "*" and not re.match(r"[a-z][a-z0-9+.-]*://[^/\s,*]+\Z", origin):
                raise ConfigError(f"cors_allow_origin must look like https://example.com, not {origin!r}")
        for word in (*self.methods, *self.headers):
            if not re.match(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\Z", word):
                raise ConfigError(f"cors_allow_method and cors_allow_header take names, not {word!r}")

    def allows(self, origin: bytes) -> bool:
        if origin == b"null":
            return False
        return "*" in self.origins or origin.decode("latin-1") in self.origins

    def answer_headers(self, origin: bytes) -> Headers:
        """What an allowed page needs to see in order to read our answer."""
        found: Headers = [(b"vary", b"Origin"), (b"access-control-expose-headers", _EXPOSED)]
        found.append((b"access-control-allow-origin", b"*" if "*" in self.origins else origin))
        if self.allows_credentials:
            found.append((b"access-control-allow-credentials", b"true"))
        return found

    def preflight_headers(self) -> Headers:
        return [
            (b"access-control-allow-methods", ", ".join(self.methods or _METHODS).encode()),
            (b"access-control-allow-headers", ", ".join(self.headers or _HEADERS).encode()),
            (b"access-control-max-age", _PREFLIGHT_SECONDS),
        ]
