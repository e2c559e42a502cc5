"""The ACP registry: which version of an agent is current, and where it is."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from sandbox_agent.agents.web import fetch
from sandbox_agent.errors import ConfigError, InstallError

DEFAULT_REGISTRY_URL = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
MAX_REGISTRY_BYTES = 8 * 1024 * 1024
_log = logging.getLogger(__name__)


class PackageTarget(msgspec.Struct, frozen=True):
    package: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class BinaryTarget(msgspec.Struct, frozen=True):
    archive: str
    cmd: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    sha256: str | None = None
    size: int | None = None


class Distribution(msgspec.Struct, frozen=True):
    npx: PackageTarget | None = None
    uvx: PackageTarget | None = None
    binary: dict[str, BinaryTarget] = {}


class RegistryAgent(msgspec.Struct, frozen=True):
    """One entry as the registry publishes it; fields we do not know are let be."""

    id: str
    version: str
    distribution: Distribution
    name: str = ""
    license: str = ""
    repository: str = ""


class RegistryIndex(msgspec.Struct, frozen=True):
    agents: dict[str, RegistryAgent] = {}


class _Document(msgspec.Struct):
    agents: list[msgspec.Raw]


class _CacheNote(msgspec.Struct):
    etag: str
    sha256: str


def parse_index(body: bytes) -> RegistryIndex:
    """Raises InstallError if it is no registry. An entry that is broken is left out: the others are not to blame."""
    try:
        document = msgspec.json.decode(body, type=_Document)
    except msgspec.DecodeError as error:
        raise InstallError(f"not a registry: {error}") from error
    agents: dict[str, RegistryAgent] = {}
    for raw in document.agents:
        try:
            agent = msgspec.json.decode(raw, type=RegistryAgent)
        except msgspec.DecodeError as error:
            _log.warning("registry entry left out: %s", error)
            continue
        agents.setdefault(agent.id, agent)
    return RegistryIndex(agents)


class Registry:
    """Reads the index at `url` (http, https or file). The last good copy is kept under `cache_dir` with its ETag."""

    def __init__(
        self,
        url: str,
        cache_dir: Path,
        env: Mapping[str, str],
        *,
        deadline: float = 8.0,
        limit: int = MAX_REGISTRY_BYTES,
    ) -> None:
        if urlsplit(url).scheme not in {"http", "https", "file"}:
            raise ConfigError(f"the registry URL must be http, https or file: {url!r}")
        self.url = url
        self._env = env
        self._deadline = deadline
        self._limit = limit
        key = hashlib.sha256(url.encode()).hexdigest()[:16]
        self._body = cache_dir / f"registry-{key}.json"
        self._parsed: tuple[int, RegistryIndex] | None = None
        self._note = cache_dir / f"registry-{key}.etag.json"

    async def index(self) -> RegistryIndex | None:
        """The current index; the last good copy when the registry cannot be read; None when there is none."""
        try:
            async with asyncio.timeout(self._deadline):
                return parse_index(await self._read())
        except (InstallError, TimeoutError, OSError) as error:
            _log.warning("registry %s cannot be read: %s", self.url, error or "too slow")
            return self.cached()

    def cached(self) -> RegistryIndex | None:
        """The last good copy, without asking anybody. It is parsed again only when it has changed."""
        try:
            changed = self._body.stat().st_mtime_ns
            if self._parsed is None or self._parsed[0] != changed:
                self._parsed = (changed, parse_index(self._body.read_bytes()))
        except (OSError, InstallError):
            return None
        return self._parsed[1]

    async def _read(self) -> bytes:
        parts = urlsplit(self.url)
        if parts.scheme == "file":
            return await asyncio.to_thread(_read_file, Path(unquote(parts.path)), self._limit)
        kept = self._kept_etag()
        async with fetch(self.url, self._env, headers={"if-none-match": kept} if kept else {}) as response:
            if response.status_code == 304 and kept:
                return self._body.read_bytes()
            if response.status_code != 200:
                raise InstallError(f"registry {self.url} answered {response.status_code}")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._limit:
                    raise InstallError(f"registry {self.url} is larger than {self._limit} bytes")
            self._keep(bytes(body), response.headers.get("etag", ""))
            return bytes(body)

    def _kept_etag(self) -> str:
        try:
            note = msgspec.json.decode(self._note.read_bytes(), type=_CacheNote)
            whole = hashlib.sha256(self._body.read_bytes()).hexdigest() == note.sha256
        except (OSError, msgspec.DecodeError):
            return ""
        return note.etag if whole else ""

    def _keep(self, body: bytes, etag: str) -> None:
        parse_index(body)
        note = msgspec.json.encode(_CacheNote(etag=etag, sha256=hashlib.sha256(body).hexdigest()))
        self._body.parent.mkdir(parents=True, exist_ok=True)
        for path, content in ((self._body, body), (self._note, note)):
            fresh = path.with_suffix(".new")
            fresh.write_bytes(content)
            fresh.replace(path)


def _read_file(path: Path, limit: int) -> bytes:
    if path.stat().st_size > limit:
        raise InstallError(f"registry {path} is larger than {limit} bytes")
    return path.read_bytes()
