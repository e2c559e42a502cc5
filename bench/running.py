"""Runs cases round by round, the servers of a case one after the other, and keeps every figure."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import load
from bench.load import Figures
from bench.plan import Case
from bench.scenarios.files import NotServed
from bench.workshop import CACHE, ROOT, build_program, clear_away


@dataclass
class Results:
    """Figures by case, server and figure, one value per round."""

    machine: dict[str, Any]
    ceiling: Figures
    seconds: float = 0.0
    form: str = "quick"
    values: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    problems: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, case: str, server: str, figures: Figures) -> None:
        for name, value in figures.items():
            self.values.setdefault(case, {}).setdefault(server, {}).setdefault(name, []).append(float(value))

    def median(self, case: str, server: str, figure: str) -> float | None:
        found = self.values.get(case, {}).get(server, {}).get(figure)
        return statistics.median(found) if found else None

    def ratio(self, case: str, server: str, other: str, figure: str) -> float | None:
        """The median of the ratios within each round: what disturbs a round disturbs both."""
        ours = self.values.get(case, {}).get(server, {}).get(figure, [])
        theirs = self.values.get(case, {}).get(other, {}).get(figure, [])
        pairs = [mine / their for mine, their in zip(ours, theirs, strict=False) if their]
        return statistics.median(pairs) if pairs else None

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.__dict__, indent=1))


def run_cases(cases: Sequence[Case], *, rounds: int, form: str) -> Results:
    began = time.monotonic()
    results = Results(machine=machine(), ceiling=measure_ceiling(), form=form)
    for turn in range(rounds):
        for case in cases:
            if case.rounds is not None and turn >= case.rounds:
                continue
            for make in case.servers:
                server = make()
                if server.name in results.problems.get(case.name, {}):
                    continue
                _run_one(results, case, server)
        results.save(CACHE / "results.json")
    clear_away()
    results.seconds = time.monotonic() - began
    results.save(CACHE / "results.json")
    return results


def measure_ceiling() -> Figures:
    """What the load generators do against a server that does nothing: they are not the limit below that."""
    events = 1_000_000
    with (CACHE / "null_server.port").open("w") as port_file:
        command = [build_program("null_server"), port_file.name, str(events)]
        server = subprocess.Popen(command)
    try:
        port = _port(Path(port_file.name))
        request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 80\r\n\r\n" + b"x" * 80
        figures: Figures = {}
        for clients in (1, 16, 64):
            posted = load.post(port, [request] * clients, seconds=0.5)
            figures[f"post-{clients}"] = posted["requests"] / posted["seconds"]
        read = load.read_streams(port, [b"GET / HTTP/1.1\r\n\r\n"], expected=events, begin=lambda: None)
        figures["events"] = read["events"] / read["seconds"]
        return figures
    finally:
        server.kill()
        server.wait()


def _run_one(results: Results, case: Case, server: Any) -> None:
    try:
        figures = case.run(server)
    except NotServed as refusal:
        results.problems.setdefault(case.name, {})[server.name] = str(refusal)
        print(f"{case.name:14} {server.name:12} not served ({refusal})", flush=True)
        return
    except (RuntimeError, OSError) as error:
        if server.is_ours:
            raise
        results.problems.setdefault(case.name, {})[server.name] = str(error)[:200]
        print(f"{case.name:14} {server.name:12} failed: {str(error)[:200]}", flush=True)
        return
    results.add(case.name, server.name, figures)
    told = "  ".join(f"{name} {value:,.1f}" for name, value in figures.items())
    print(f"{case.name:14} {server.name:12} {told}", flush=True)


def _port(path: Path) -> int:
    deadline = time.monotonic() + 10
    while not path.read_text().strip():
        if time.monotonic() > deadline:
            raise RuntimeError("the null server did not start")
        time.sleep(0.01)
    return int(path.read_text())


def machine() -> dict[str, Any]:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "load_at_start": os.getloadavg()[0],
    }
