"""What is configured for a directory and all below it: MCP servers and skills, by name, in files that lie there.

The files are `.sandbox-agent/config/mcp.json` and `skills.json`. An entry is applied only if this server has
written it: a project that somebody has downloaded must not bring commands that are run without being asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import msgspec

from sandbox_agent.errors import Forbidden, InvalidParams, NotFound, SandboxAgentError
from sandbox_agent.files import FileService

_log = logging.getLogger(__name__)
Kind = Literal["mcp", "skills"]
_FOLDER = ".sandbox-agent/config"
_FILE_BYTES = 1 << 20
_NAME_LENGTH = 200
_ENTRIES = 1000
_DEPTH = 64


class Entry(NamedTuple):
    """`directory` is where it is configured."""

    name: str
    directory: str
    config: dict[str, Any]
    is_trusted: bool


class DirectoryEntries:
    """`trust` is the file in which is noted what this server has written."""

    def __init__(self, files: FileService, trust: Path) -> None:
        self._files = files
        self._trust = trust
        self._trusted: set[str] | None = None
        self._writing = asyncio.Lock()

    async def get(self, kind: Kind, directory: str, name: str) -> dict[str, Any]:
        """Raises NotFound."""
        stored = await self._read(kind, _absolute(directory))
        if name not in stored:
            raise NotFound(f"{kind} {name[:_NAME_LENGTH]!r} is not configured for {directory}")
        found: dict[str, Any] = stored[name]
        return found

    async def put(self, kind: Kind, directory: str, name: str, config: dict[str, Any]) -> None:
        if not name.strip() or len(name) > _NAME_LENGTH:
            raise InvalidParams(f"a name must have 1 to {_NAME_LENGTH} characters")
        where = _absolute(directory)
        mark = _mark(kind, where, name, config)

        async def change(stored: dict[str, Any]) -> None:
            if name not in stored and len(stored) >= _ENTRIES:
                raise InvalidParams(f"{where} has {_ENTRIES} entries already")
            stored[name] = config
            await asyncio.to_thread(self._note, mark)

        await self._change(kind, where, change)

    async def delete(self, kind: Kind, directory: str, name: str) -> dict[str, Any] | None:
        """What it was; None if it was not there, which is no error."""
        gone: list[dict[str, Any]] = []

        async def change(stored: dict[str, Any]) -> None:
            if name in stored:
                gone.append(stored.pop(name))

        await self._change(kind, _absolute(directory), change)
        return gone[0] if gone else None

    async def found(self, kind: Kind, cwd: str) -> list[Entry]:
        """What holds in `cwd`: of entries with one name, the one of the nearest directory."""
        cwd = _absolute(cwd)
        above = [str(place) for place in (PurePosixPath(cwd), *PurePosixPath(cwd).parents)][:_DEPTH]
        places = [place for place in above if os.path.isdir(f"{place}/{_FOLDER}")]  # noqa: PTH112, ASYNC240 - no wait
        if not places:
            return []  # as it is for nearly every session: a few looks at directories are all that it costs
        trusted = await asyncio.to_thread(self._load)
        every = await asyncio.gather(*(self._read_quietly(kind, place) for place in places))
        nearest: dict[str, Entry] = {}
        for place, stored in zip(places, every, strict=True):
            for name, config in stored.items():
                is_ours = _mark(kind, place, name, config) in trusted
                nearest.setdefault(name, Entry(name, place, config, is_ours))
        return list(nearest.values())

    async def _change(self, kind: Kind, where: str, change: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        async with self._writing:
            stored = await self._read(kind, where)
            before = dict(stored)
            await change(stored)
            if stored != before:
                body = msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n"
                await self._files.write_bytes(_file(kind, where), body, limit=_FILE_BYTES)

    async def _read(self, kind: Kind, where: str) -> dict[str, Any]:
        path = _file(kind, where)
        try:
            raw = await self._files.read_bytes(path, limit=_FILE_BYTES)
        except NotFound:
            return {}
        try:
            return msgspec.json.decode(raw, type=dict[str, dict[str, Any]])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidParams(f"{path} is not an object by name: {error}") from None

    async def _read_quietly(self, kind: Kind, where: str) -> dict[str, Any]:
        try:
            return await self._read(kind, where)
        except Forbidden:
            return {}  # above the roots
        except SandboxAgentError as error:
            _log.warning("configuration is passed over directory=%s error=%s", where, error.detail)
            return {}

    def _load(self) -> set[str]:
        if self._trusted is None:
            try:
                self._trusted = set(self._trust.read_text().split())
            except OSError:
                self._trusted = set()
        return self._trusted

    def _note(self, mark: str) -> None:
        trusted = self._load()
        if mark not in trusted:
            self._trust.parent.mkdir(parents=True, exist_ok=True)
            with self._trust.open("a") as file:
                file.write(f"{mark}\n")
            trusted.add(mark)


def require_trust(*, is_trusted: bool) -> None:
    """Raises InvalidParams."""
    if not is_trusted:
        raise InvalidParams("it was not added through this server; add it again to use it")


def _absolute(directory: str) -> str:
    if not directory.startswith("/"):
        raise InvalidParams(f"directory must be an absolute path, not {directory[:_NAME_LENGTH]!r}", field="directory")
    return os.path.normpath(directory)


def _file(kind: Kind, where: str) -> str:
    return f"{where.rstrip('/')}/{_FOLDER}/{kind}.json"


def _mark(kind: Kind, where: str, name: str, config: dict[str, Any]) -> str:
    body = msgspec.json.encode([kind, where, name, config], order="sorted")
    return hashlib.sha256(body).hexdigest()
