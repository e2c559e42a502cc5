"""Sessions on disk: a JSON file each, replaced atomically, so that a kill costs the running turn at most."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sandbox_agent.mock_agent.session import Session

PAGE_SIZE = 50

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


class SessionSummary(msgspec.Struct, rename="camel", omit_defaults=True):
    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str = ""


class StateFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._has_failed = False

    def save(self, session: Session) -> None:
        """Where the disk refuses, the session lives on in memory only, and stderr says so once."""
        path = self._path(session.session_id)
        spare = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(parents=True, exist_ok=True)
            spare.write_bytes(msgspec.json.encode(session))
            spare.replace(path)
        except OSError as error:
            if not self._has_failed:
                sys.stderr.write(f"mock agent: sessions will not survive this process: {error}\n")
            self._has_failed = True

    def load(self, session_id: str) -> Session | None:
        if not _SESSION_ID.fullmatch(session_id):
            return None
        try:
            return msgspec.json.decode(self._path(session_id).read_bytes(), type=Session)
        except (OSError, msgspec.DecodeError):
            return None

    def delete(self, session_id: str) -> None:
        if not _SESSION_ID.fullmatch(session_id):
            return
        try:
            self._path(session_id).unlink(missing_ok=True)
        except OSError as error:
            sys.stderr.write(f"mock agent: {session_id} stays on disk: {error}\n")

    def page(self, cwd: str | None, cursor: str | None) -> tuple[list[SessionSummary], str | None]:
        """Sessions after `cursor`, latest first, and the cursor of the next page. Raises ValueError."""
        after = _parse_cursor(cursor) if cursor is not None else None
        found: list[SessionSummary] = []
        last = ""
        for age, path in sorted(self._files()):
            if after is not None and (age, path.stem) <= after:
                continue
            summary = _summarize(path)
            if summary is None or (cwd is not None and summary.cwd != cwd):
                continue
            if len(found) == PAGE_SIZE:
                return found, last
            found.append(summary)
            last = f"{-age}.{path.stem}"
        return found, None

    def _files(self) -> Iterator[tuple[int, Path]]:
        for path in self._folder.glob("*.json"):
            try:
                yield -path.stat().st_mtime_ns, path
            except OSError:
                continue  # deleted by another process meanwhile

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{session_id}.json"


def _parse_cursor(cursor: str) -> tuple[int, str]:
    stamp, dot, session_id = cursor.partition(".")
    if not dot:
        raise ValueError(f"not a cursor: {cursor!r}")
    return -int(stamp), session_id


def _summarize(path: Path) -> SessionSummary | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SessionSummary)
    except (OSError, msgspec.DecodeError):
        return None
