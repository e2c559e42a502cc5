"""Bounded HTTP GET for registries and archives: redirects checked one by one, what is downloaded checked too."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from sandbox_agent.errors import InstallError

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS = 5
MAX_ARCHIVE_BYTES = 2 * 1024**3
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def is_loopback(url: str) -> bool:
    return (urlsplit(url).hostname or "") in _LOOPBACK


def redirect_target(url: str, location: str) -> str:
    """Where a redirect leads. Raises InstallError when it leaves the web or loses encryption."""
    target = urljoin(url, location)
    before, after = urlsplit(url).scheme, urlsplit(target).scheme
    if after not in {"http", "https"} or (before == "https" and after != "https"):
        raise InstallError(f"refused: {url} redirects from {before} to another scheme: {target}")
    if after == "http" and is_loopback(target) != is_loopback(url):
        raise InstallError(f"refused: {url} redirects to another kind of host without encryption: {target}")
    return target


@asynccontextmanager
async def fetch(
    url: str, env: Mapping[str, str], *, headers: Mapping[str, str] | None = None, idle: float = 30.0
) -> AsyncIterator[httpx.Response]:
    """Open `url`, body not yet read. `idle` bounds the connect and every wait for bytes; the caller bounds the whole.

    Raises InstallError for refused redirects and for anything that httpx complains about, also while reading.
    """
    import httpx  # noqa: PLC0415 - costs 100 ms, and most servers never download

    try:
        async with httpx.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(idle, connect=min(idle, 10.0)),
            verify=_tls(env),
            proxy=_proxy(url, env),
        ) as client:
            for _ in range(MAX_REDIRECTS + 1):
                async with client.stream("GET", url, headers=dict(headers or {})) as response:
                    if not response.has_redirect_location:
                        yield response
                        return
                    url = redirect_target(url, response.headers["location"])
            raise InstallError(f"more than {MAX_REDIRECTS} redirects, the last to {url}")
    except httpx.TimeoutException as error:
        raise InstallError(f"{url}: no answer, or nothing more of it, within {idle:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InstallError(f"{url}: {str(error) or type(error).__name__}") from error


def check_archive_url(url: str) -> str:
    scheme = urlsplit(url).scheme
    if scheme == "https" or (scheme == "http" and is_loopback(url)):
        return url
    raise InstallError(f"refused: archives come over https only, not {url!r}")


async def download(
    url: str,
    target: Path,
    env: Mapping[str, str],
    *,
    sha256: str | None = None,
    size: int | None = None,
    limit: int = MAX_ARCHIVE_BYTES,
    on_bytes: Callable[[int, int | None], None] = lambda _done, _total: None,
) -> int:
    """Write `url` to `target` and return its size. Raises InstallError if size or checksum are not as published."""
    digest, done = hashlib.sha256(), 0
    async with fetch(check_archive_url(url), env, headers={"accept-encoding": "identity"}) as response:
        if response.status_code != 200:
            raise InstallError(f"{url} answered {response.status_code}")
        length = response.headers.get("content-length", "")
        total = size or (int(length) if length.isdigit() else None)
        with target.open("xb") as file:
            async for chunk in response.aiter_raw():
                done += len(chunk)
                if done > (size if size is not None else limit):
                    raise InstallError(f"{url} is larger than {size or limit} bytes")
                digest.update(chunk)
                await asyncio.to_thread(file.write, chunk)
                on_bytes(done, total)
    if size is not None and done != size:
        raise InstallError(f"{url} has {done} bytes, the registry says {size}")
    if sha256 is not None and not hmac.compare_digest(digest.hexdigest(), sha256.lower().removeprefix("sha256:")):
        raise InstallError(f"{url} has checksum {digest.hexdigest()}, the registry says {sha256}")
    return done


def _tls(env: Mapping[str, str]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=env.get("SSL_CERT_FILE") or None, capath=env.get("SSL_CERT_DIR") or None)


def _proxy(url: str, env: Mapping[str, str]) -> str | None:
    scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
    direct = [name.strip().lstrip(".") for name in (env.get("no_proxy") or env.get("NO_PROXY") or "").split(",")]
    if is_loopback(url) or any(name == "*" or (name and f".{host}".endswith(f".{name}")) for name in direct):
        return None
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    return next((env[name] for name in names if env.get(name)), None)
