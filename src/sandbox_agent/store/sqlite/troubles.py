"""What keeps the store from keeping what it is given, in words; said in the log once per change.

What cannot be used is set aside in files beside the database, never thrown away: `FILE.refused` has operations that
the database could not take in, one JSON object a line; `FILE….damaged.N` are files in which something is ruined.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from sandbox_agent.store.operations import Operation, encode_operation

Part = Literal["journal", "database"]
_log = logging.getLogger("sandbox_agent.store")


class Troubles:
    def __init__(self, path: Path) -> None:
        """`path` is the database's."""
        self.lost = 0
        self._path = path
        self._refused = path.with_name(f"{path.name}.refused")
        self._problems: dict[Part, str] = {}
        self.damaged = 0
        """Rows that could not be read as they were written, as often as somebody met one."""
        self.aside = self._find_aside()
        """The files that have been set aside, by this server or an earlier one."""
        self.on_trouble: Callable[[], None] | None = None
        """Called by whoever is the first to report some, in his thread."""
        self._lock = threading.Lock()

    @property
    def is_degraded(self) -> bool:
        return bool(self._problems)

    @property
    def problem(self) -> str | None:
        with self._lock:
            return "; ".join(f"{part}: {text}" for part, text in sorted(self._problems.items())) or None

    def has_problem(self, part: Part) -> bool:
        return part in self._problems

    def report(self, part: Part, problem: str) -> None:
        with self._lock:
            was_degraded = self.is_degraded
            self._problems[part] = problem
        if not was_degraded:
            if self.on_trouble is not None:
                self.on_trouble()
            _log.error("history is not being written, conversations go on: %s: %s (%s)", part, problem, self._path)

    def clear(self, part: Part) -> None:
        if part not in self._problems:
            return
        with self._lock:
            self._problems.pop(part, None)
            is_degraded = self.is_degraded
        if not is_degraded:
            _log.warning("history is being written again, %d entries were lost (%s)", self.lost, self._path)

    def refuse(self, operation: Operation, error: Exception) -> None:
        """Keep an operation that the database cannot take in. Raises OSError."""
        try:
            content = encode_operation(operation)
        except ValueError:  # what cannot be written down cannot be kept either, but for people
            content = repr(operation).encode("utf-8", "backslashreplace")
        self.refuse_bytes(f"{type(operation).__name__} {operation.number}: {error}", content)

    def refuse_bytes(self, reason: str, content: bytes) -> None:
        """Keep what cannot become an operation. Raises OSError."""
        reason = reason.encode("utf-8", "backslashreplace").decode()
        line = msgspec.json.encode({"reason": reason, "content": content}) + b"\n"
        fd = os.open(self._refused, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)
        self.aside = self._find_aside()
        _log.error("the store cannot take this in, it was set aside in %s: %s", self._refused, reason)

    def set_aside(self, path: Path, reason: str) -> None:
        """Give a damaged file another name. Raises OSError."""
        kept = _free_name(path)
        path.rename(kept)
        kept.chmod(0o600)
        self.aside = self._find_aside()
        _log.warning(
            "%s is damaged (%s): what can be read of it is used, and all of it is kept in %s", path, reason, kept
        )

    def _find_aside(self) -> list[str]:
        found = [path for path in self._path.parent.glob(f"{self._path.name}*.damaged.*") if path.is_file()]
        found += [self._refused] if self._refused.exists() else []
        return sorted(map(str, found))


def _free_name(path: Path) -> Path:
    for number in itertools.count(1):
        kept = path.with_name(f"{path.name}.damaged.{number}")
        if not kept.exists():
            return kept
    raise AssertionError("count ends")
