"""How long `import sandbox_agent` and `sandbox-agent --help` take, as ratios of a bare Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

_ROUNDS = 11
_COMMAND = str(Path(sys.executable).with_name("sandbox-agent"))
_MEASURED = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import sandbox_agent'": [sys.executable, "-c", "import sandbox_agent"],
    "python -c 'from sandbox_agent import SandboxAgent'": [
        sys.executable,
        "-c",
        "from sandbox_agent import SandboxAgent",
    ],
    "sandbox-agent --help": [_COMMAND, "--help"],
    "sandbox-agent run --help": [_COMMAND, "run", "--help"],
}


def measure() -> dict[str, float]:
    """The median seconds of each, taken in turns so that noise hits all alike."""
    taken: dict[str, list[float]] = {name: [] for name in _MEASURED}
    for _ in range(_ROUNDS):
        for name, command in _MEASURED.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    times = measure()
    bare = times["python -c pass"]
    for name, seconds in times.items():
        print(f"{name:<52} {seconds * 1000:7.0f} ms  {seconds / bare:5.1f} times")


if __name__ == "__main__":
    main()
