"""Collects what the real-agent tests found and writes it into docs/agents.md as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.real_agents import CHECKED_AGENTS, REAL_AGENTS

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
BEGIN = "<!-- begin: written by make test-agents REGENERATE=1 -->"
END = "<!-- end: written by make test-agents REGENERATE=1 -->"

CHECKS_BEGIN = "<!-- begin: written by make test-agents FULL=1 REGENERATE=1 -->"
CHECKS_END = "<!-- end: written by make test-agents FULL=1 REGENERATE=1 -->"

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
        self._checked: dict[str, tuple[str, str, dict[str, str]]] = {}
        self._has_failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed = self._has_failed or report.failed
        properties: dict[str, Any] = dict(report.user_properties)
        if "checked" in properties and report.when == "call":
            agent, version, isolation, findings = properties["checked"]
            self._checked[agent] = (version, isolation, {check: verdict for check, verdict, _ in findings})
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
        if self._write and not self._has_failed and set(self._checked) == set(CHECKED_AGENTS):
            _write_between(CHECKS_BEGIN, CHECKS_END, self._checks())
        every = {(feature, agent) for feature in FEATURES for agent in REAL_AGENTS}
        if not self._write or self._has_failed or every - set(self._cells):
            return
        _write_between(BEGIN, END, self._table())

    def _checks(self) -> str:
        checks = list(next(iter(self._checked.values()))[2])
        lines = ["| agent | version | isolation | " + " | ".join(checks) + " |", "|---" * (len(checks) + 3) + "|"]
        for agent in CHECKED_AGENTS:
            version, isolation, verdicts = self._checked[agent]
            lines.append(f"| {agent} | {version} | {isolation} | " + " | ".join(verdicts[c] for c in checks) + " |")
        return "\n".join(lines) + "\n"

    def _table(self) -> str:
        lines = ["| | " + " | ".join(REAL_AGENTS) + " |", "|---" * (len(REAL_AGENTS) + 1) + "|"]
        for rows, known in ((FACTS, self._facts), (FEATURES, self._cells)):
            lines += [f"| {row} | " + " | ".join(known[row, agent] for agent in REAL_AGENTS) + " |" for row in rows]
        return "\n".join(lines) + "\n"


def _write_between(begin: str, end: str, table: str) -> None:
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(begin)
    tail = rest.partition(end)[2]
    PAGE.write_text(f"{head}{begin}\n\n{table}\n{end}{tail}", "utf-8")
