"""`python -m bench.soak_health PORT…`: how long `/v1/health` takes at each port, asked in turn until stdin ends.

A program of its own, so that what is measured is the server and not the soak's clients. Prints a line of milliseconds
for each turn; -1 stands for no answer.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.servers import TOKEN

EVERY = 0.25
PATIENCE = 60.0


def main(ports: list[int]) -> None:
    while not select.select([sys.stdin], [], [], EVERY)[0]:
        print(*(f"{ask(port):.2f}" for port in ports), flush=True)


def ask(port: int) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    begun = time.perf_counter()
    try:
        connection.request("GET", "/v1/health", headers={"authorization": f"Bearer {TOKEN}"})
        if connection.getresponse().status != 200:
            return -1.0
    except (OSError, http.client.HTTPException):
        return -1.0
    finally:
        connection.close()
    return (time.perf_counter() - begun) * 1000


@contextlib.contextmanager
def measured(path: Path, *ports: int) -> Iterator[list[list[float]]]:
    """One list of times for each port, filled when the block ends."""
    times: list[list[float]] = [[] for _ in ports]
    command = [sys.executable, "-m", "bench.soak_health", *map(str, ports)]
    with path.open("w+") as output:
        asking = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output)
        try:
            yield times
        finally:
            asking.communicate()
            output.seek(0)
            for line in output:
                for one, found in zip(times, line.split(), strict=True):
                    one.append(float(found))


def percentile(times: list[float], part: float) -> float:
    return sorted(times)[int((len(times) - 1) * part)]


if __name__ == "__main__":
    main([int(port) for port in sys.argv[1:]])
