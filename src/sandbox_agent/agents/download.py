"""Fetch one archive to a file: encrypted or loopback, bounded, checked."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from sandbox_agent.agents.web import fetch, is_loopback
from sandbox_agent.errors import InstallError

MAX_ARCHIVE_BYTES = 2 * 1024**3


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
