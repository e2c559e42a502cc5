"""Where installs lie, what each leaves behind (`install.json`), and the lock that processes share over them."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec

from sandbox_agent.errors import InstallError

Source = Literal["registry", "fallback", "path", "builtin", "custom"]
ArtifactKind = Literal["agent_process", "native_agent", "runtime"]
RECEIPT = "install.json"
STAGING = ".staging-"


class Artifact(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: ArtifactKind
    name: str
    version: str
    path: str
    source: Source
    size_bytes: int = 0


class Receipt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`command` and `env` are templates, so that an install directory can move with its data dir."""

    agent: str
    version: str
    source: Source
    artifacts: tuple[Artifact, ...]
    layout: Literal["npm", "pypi", "archive"]
    command: tuple[str, ...]
    env: dict[str, str] = {}
    private_node: bool = False
    verified: bool = False
    reported: str | None = None
    protocol_version: int | None = None
    installed_at: str = ""


class AgentShelf:
    """The install directories of one agent: `<data dir>/agents/<id>/<version>/`, and `current` that names one.

    An install directory never changes once it has its name; a reinstall makes another one.
    """

    def __init__(self, data_dir: Path, agent: str) -> None:
        self.path = data_dir / "agents" / agent
        self.lock = self.path / ".lock"
        self._current = self.path / "current"

    def current(self) -> Path | None:
        """The directory that is in use, if it is whole."""
        try:
            name = str(self._current.readlink())
        except OSError:
            return None
        home = self.path / name
        return home if "/" not in name and (home / RECEIPT).is_file() else None

    def point_to(self, home: Path) -> None:
        pointer = self.path / f"{STAGING}pointer"
        pointer.unlink(missing_ok=True)
        pointer.symlink_to(home.name)
        pointer.replace(self._current)

    def homes(self) -> Iterator[Path]:
        """Every whole install."""
        if self.path.is_dir():
            yield from (p for p in sorted(self.path.iterdir()) if not p.is_symlink() and (p / RECEIPT).is_file())

    def leftovers(self) -> list[Path]:
        """What installs that were killed left; only the holder of the lock may ask."""
        return [p for p in self.path.iterdir() if p.name.startswith(STAGING)] if self.path.is_dir() else []

    def vacant(self, version: str) -> Path:
        """A directory name for `version` that nothing has yet."""
        home, turn = self.path / version, 1
        while home.exists():
            turn += 1
            home = self.path / f"{version}.r{turn}"
        return home


def read_receipt(home: Path) -> Receipt | None:
    """None when it is missing or not ours to understand: such an install does not count."""
    try:
        return msgspec.json.decode((home / RECEIPT).read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError):
        return None


def write_receipt(home: Path, receipt: Receipt) -> None:
    (home / RECEIPT).write_bytes(msgspec.json.format(msgspec.json.encode(receipt), indent=2))


def expand(template: str, root: Path, layout: str) -> str:
    """Fill {root}, {bin} and {python} for an install at `root`."""
    bins = {"npm": root / "node_modules" / ".bin", "pypi": root / "venv" / "bin"}.get(layout, root / "files")
    values = {"{root}": str(root), "{bin}": str(bins), "{python}": str(bins / "python")}
    for placeholder, value in values.items():
        template = template.replace(placeholder, value)
    return template


@asynccontextmanager
async def file_lock(path: Path, *, deadline: float = 1800.0) -> AsyncIterator[None]:
    """Hold `path` exclusively; the kernel lets go of it if this process dies. Raises InstallError after `deadline`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            async with asyncio.timeout(deadline):
                while not _take(handle):  # noqa: ASYNC110 - flock cannot wake a loop
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise InstallError(f"another process has held {path} for {deadline:.0f} s") from None
        yield
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
