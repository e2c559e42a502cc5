"""The directory that a client works in: where it is, its files, and what is found in them."""

from __future__ import annotations

import base64
import mimetypes
import os
import time
from collections import deque
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox_agent.errors import InvalidParams, NotFound, SandboxAgentError, TooLarge
from sandbox_agent.files import FileService
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.views import PROJECT

_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__", ".cache", "dist", "build", "target"})
_WALKED = 20_000
"""Entries that one search looks at."""
_SEARCH_SECONDS = 5.0
_FOUND = 100
_SEARCHED_BYTES = 1 << 20
_LINE_CHARS = 2000


class Workspace:
    def __init__(self, files: FileService, directory: str, home: str) -> None:
        self._files = files
        self._directory = directory
        self._home = home
        self._started = int(time.time() * 1000)

    def directory(self, call: Call) -> str:
        return call.directory or self._directory

    async def path(self, call: Call) -> dict[str, Any]:
        directory = self.directory(call)
        state = str(Path(self._home) / ".local" / "state" / "opencode")
        config = str(Path(self._home) / ".config" / "opencode")
        return {
            "home": self._home,
            "state": state,
            "config": config,
            "worktree": directory,
            "directory": directory,
        }

    async def project(self, call: Call) -> dict[str, Any]:
        directory = self.directory(call)
        times = {"created": self._started, "updated": self._started}
        told: dict[str, Any] = {"id": PROJECT, "worktree": directory, "time": times, "sandboxes": []}
        return {**told, "vcs": "git"} if await self._branch(directory) is not None else told

    async def projects(self, call: Call) -> list[dict[str, Any]]:
        return [await self.project(call)]

    async def directories(self, call: Call) -> list[dict[str, Any]]:
        return [{"directory": self.directory(call)}]

    async def vcs(self, call: Call) -> dict[str, Any]:
        branch = await self._branch(self.directory(call))
        return {"branch": branch} if branch else {}

    async def location(self, call: Call) -> dict[str, Any]:
        directory = self.directory(call)
        return {"directory": directory, "project": {"id": PROJECT, "directory": directory}}

    async def _branch(self, directory: str) -> str | None:
        """The branch that is checked out; None where there is no repository, "" on a commit of its own."""
        try:
            head = (await self._files.read_bytes(".git/HEAD", base=Path(directory), limit=4096)).decode(
                "utf-8", "replace"
            )
        except SandboxAgentError:
            return None
        return head.strip().removeprefix("ref: refs/heads/") if head.startswith("ref: ") else ""

    async def listed(self, call: Call) -> list[dict[str, Any]]:
        path, base = call.query("path"), Path(self.directory(call))
        if path is None:
            raise InvalidParams("query: path is missing")
        entries = await self._files.list_entries(path or ".", base=base)
        return [_node(entry.name, entry.path, entry.entry_type, base) for entry in entries]

    async def read(self, call: Call) -> dict[str, Any]:
        """Of a file that is not there, nothing, as in OpenCode."""
        path, base = call.query("path"), Path(self.directory(call))
        if path is None:
            raise InvalidParams("query: path is missing")
        try:
            content = await self._files.read_bytes(path, base=base)
        except NotFound:
            return {"type": "text", "content": ""}
        try:
            return {"type": "text", "content": content.decode("utf-8")}
        except UnicodeDecodeError:
            mime = mimetypes.guess_type(path)[0] or "application/octet-stream"
            encoded = base64.b64encode(content).decode()
            return {"type": "binary", "content": encoded, "encoding": "base64", "mimeType": mime}

    async def find_files(self, call: Call) -> list[str]:
        """Paths that contain the letters of the query in this order, the best first."""
        found = await self._found_files(call)
        return [path for path, _ in found]

    async def find_entries(self, call: Call) -> list[dict[str, Any]]:
        return [{"path": path.rstrip("/"), "type": type_} for path, type_ in await self._found_files(call)]

    async def _found_files(self, call: Call) -> list[tuple[str, str]]:
        wanted, kind = (call.query("query") or "").lower(), call.query("type")
        has_directories = kind == "directory" or (kind is None and call.query("dirs") != "false")
        limit = call.number("limit", low=1, high=_FOUND) or _FOUND
        matching: list[tuple[tuple[int, int, str], str, str]] = []
        base = Path(self.directory(call))
        for path, type_ in await self._walk(base):
            is_wanted = type_ == "file" if kind == "file" else type_ == "directory" if kind == "directory" else True
            if is_wanted and (has_directories or type_ == "file") and (rank := _rank(path.lower(), wanted)) is not None:
                matching.append(((rank, len(path), path), path + ("/" if type_ == "directory" else ""), type_))
        return [(path, type_) for _, path, type_ in sorted(matching)[:limit]]

    async def find_text(self, call: Call) -> list[dict[str, Any]]:
        """Lines that contain the pattern as it stands, upper or lower case."""
        pattern, base = call.query("pattern"), Path(self.directory(call))
        if not pattern:
            raise InvalidParams("query: pattern is missing")
        end = time.monotonic() + _SEARCH_SECONDS
        found: list[dict[str, Any]] = []
        for path, type_ in await self._walk(base):
            if type_ != "file" or time.monotonic() > end:
                continue
            try:
                content = await self._files.read_bytes(path, base=base, limit=_SEARCHED_BYTES)
            except (SandboxAgentError, TooLarge):
                continue
            found += _matches(path, content, pattern.lower())
            if len(found) >= _FOUND:
                break
        return found[:_FOUND]

    async def _walk(self, base: Path) -> list[tuple[str, str]]:
        """Files and directories below, the nearest first, as many as a search may look at."""
        found: list[tuple[str, str]] = []
        todo: deque[str] = deque(["."])
        end = time.monotonic() + _SEARCH_SECONDS
        while todo and len(found) < _WALKED and time.monotonic() < end:
            folder = todo.popleft()
            try:
                entries = await self._files.list_entries(folder, base=base)
            except SandboxAgentError:
                continue
            for entry in entries:
                path = entry.name if folder == "." else f"{folder}/{entry.name}"
                if entry.entry_type == "directory" and entry.name in _SKIPPED:
                    continue
                found.append((path, entry.entry_type))
                if entry.entry_type == "directory":
                    todo.append(path)
        return found[:_WALKED]


def _node(name: str, path: str, type_: str, base: Path) -> dict[str, Any]:
    relative = os.path.relpath(path, base)
    shown = f"{relative}/" if type_ == "directory" else relative
    return {"name": name, "path": shown, "absolute": path, "type": type_, "ignored": name in _SKIPPED}


def _rank(path: str, wanted: str) -> int | None:
    """How well a path fits: its name, somewhere in it, or by letters in order; None if not at all."""
    if wanted in PurePosixPath(path).name:
        return 0
    if wanted in path:
        return 1
    letters = iter(path)
    return 2 if all(letter in letters for letter in wanted) else None


def _matches(path: str, content: bytes, pattern: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if b"\0" in content:
        return found
    offset = 0
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(keepends=True), 1):
        start = line.lower().find(pattern)
        if start >= 0:
            match = {"match": {"text": line[start : start + len(pattern)]}, "start": start, "end": start + len(pattern)}
            found.append(
                {
                    "path": {"text": path},
                    "lines": {"text": line[:_LINE_CHARS]},
                    "line_number": number,
                    "absolute_offset": offset,
                    "submatches": [match],
                }
            )
        offset += len(line.encode())
    return found
