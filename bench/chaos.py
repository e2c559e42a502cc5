"""`python -m bench.chaos --minutes 10`: three nodes on one PostgreSQL under random faults, and what every client saw.

It ends with counts, and with an error if anything was lost, doubled, out of order, run twice, left unanswered, or told
and not in the history.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.chaos import Chaos, Verdict
from support.postgres import running_postgres


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    wanted = parser.parse_args()
    print(f"seed {wanted.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, running_postgres() as postgres:
        chaos = Chaos(postgres, Path(folder), wanted.seed, nodes=wanted.nodes, sessions=wanted.sessions)
        verdict = asyncio.run(chaos.run(wanted.minutes * 60))
        print(describe(verdict), flush=True)
    sys.exit(1 if verdict.broken else 0)


def describe(verdict: Verdict) -> str:
    kinds = ("lost", "doubled", "out of order", "not in history", "holes", "run twice", "unanswered")
    lines = [f"  {verdict.broken[kind]:8,}  {kind}" for kind in kinds]
    lines += [f"  {number:8,}  fault: {name}" for name, number in verdict.faults.most_common()]
    lines += [f"  {number:8,}  prompt: {name}" for name, number in verdict.turns.most_common()]
    lines += [f"  {verdict.events:8,}  events in history"]
    lines += [f"  {verdict.slowest:8.1f}  seconds until the slowest prompt was answered"]
    return "\n".join([*lines, *verdict.notes])


if __name__ == "__main__":
    main()
