"""Collects what the real-agent tests found and writes it into docs/agents.md as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.real_agents import REAL_AGENTS

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
BEGIN = "<!-- begin: written by make test-agents REGENERATE=1 -->"
END = "<!-- end: written by make test-agents REGENERATE=1 -->"

FACTS = ("version", "starts in", "memory, one session", "memory, several sessions")
FEATURES = (
    "handshake",
    "streamed text",
    "permission allowed",
    "permission rejected",
    "cancel in a slow turn",
    "cancel with a permission open",
    "two sessions at once",
    "two clients on one session",
    "load, also after a restart",
    "resume, also after a restart",
    "set mode, either spelling",
    "set model, either spelling",
    "killed and resumed",
    "a stop in a turn leaves nothing",
)


class MatrixReport:
    """A pytest plugin for the process that runs the session; workers send it their reports."""

    def __init__(self, *, write: bool) -> None:
        self._write = write
        self._cells: dict[tuple[str, str], str] = {}
        self._facts: dict[tuple[str, str], str] = {}
        self._has_failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed = self._has_failed or report.failed
        properties: dict[str, Any] = dict(report.user_properties)
        if "cell" not in properties or report.when != "call":
            return
        feature, agent = properties["cell"]
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._cells[feature, agent] = "— " + reason.removeprefix("Skipped: ")
        else:
            self._cells[feature, agent] = f"{'yes' if report.passed else 'NO'}, {report.duration:.1f} s"
        for name, value in properties.items():
            if name.startswith("fact:"):
                self._facts[name.removeprefix("fact:"), agent] = str(value)

    def pytest_sessionfinish(self) -> None:
        every = {(feature, agent) for feature in FEATURES for agent in REAL_AGENTS}
        if not self._write or self._has_failed or every != set(self._cells):
            return
        page = PAGE.read_text("utf-8")
        head, _, rest = page.partition(BEGIN)
        tail = rest.partition(END)[2]
        PAGE.write_text(f"{head}{BEGIN}\n\n{self._table()}\n{END}{tail}", "utf-8")

    def _table(self) -> str:
        lines = ["| | " + " | ".join(REAL_AGENTS) + " |", "|---" * (len(REAL_AGENTS) + 1) + "|"]
        for rows, known in ((FACTS, self._facts), (FEATURES, self._cells)):
            lines += [f"| {row} | " + " | ".join(known[row, agent] for agent in REAL_AGENTS) + " |" for row in rows]
        return "\n".join(lines) + "\n"
