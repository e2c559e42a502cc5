"""What keeps the store from keeping what it is given, in words; said in the log once per change."""

from __future__ import annotations

import logging
import threading
from typing import Literal

Part = Literal["journal", "database"]
_log = logging.getLogger("sandbox_agent.store")


class Troubles:
    def __init__(self, path: str) -> None:
        self.lost = 0
        self._path = path
        self._problems: dict[Part, str] = {}
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
            _log.error("history is not being written, conversations go on: %s: %s (%s)", part, problem, self._path)

    def clear(self, part: Part) -> None:
        if part not in self._problems:
            return
        with self._lock:
            self._problems.pop(part, None)
            is_degraded = self.is_degraded
        if not is_degraded:
            _log.warning("history is being written again, %d entries were lost (%s)", self.lost, self._path)
