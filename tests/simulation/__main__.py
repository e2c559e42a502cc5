"""`python -m simulation`: look for histories that break a promise, or replay one."""

from __future__ import annotations

import argparse
import logging
import os
import random
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from simulation.campaign import look, read_steps, replay, search_at_once
from simulation.mutants import MUTANTS, Mutant, applied
from simulation.store_lives import simulate

_LIVES = 600


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to look [default: 60]")
    parser.add_argument("--seed", type=int, help="replay this history and print what happened")
    parser.add_argument("--steps", help="with --seed: only these steps, such as 0-3,7")
    parser.add_argument("--first", type=int, help="the first seed to look at [default: random]")
    parser.add_argument("--mutants", action="store_true", help="put old bugs back and say which are found")
    parser.add_argument("--histories", type=int, default=1500, help="with --mutants: for each [default: 1500]")
    parser.add_argument("--only", help="with --mutants: those whose names contain this")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="[default: one for each core]")
    parser.add_argument("--store", action="store_true", help="lives of the store alone, without a hub")
    wanted = parser.parse_args()
    if wanted.mutants:
        return _hunt(wanted.first or 0, wanted.histories, wanted.only or "", wanted.processes)
    if wanted.store:
        return _live(wanted.seed, wanted.seconds)
    if wanted.seed is not None:
        return _replay(wanted.seed, None if wanted.steps is None else read_steps(wanted.steps))
    first = random.SystemRandom().randrange(1 << 40) if wanted.first is None else wanted.first
    return _search(first, wanted.seconds, wanted.processes)


def _replay(seed: int, steps: list[int] | None) -> int:
    outcome = replay(seed, steps)
    print(outcome.trace.text, end="")
    print(f"trace {outcome.trace.digest}")
    print("every promise was kept" if outcome.broken is None else f"broken: {outcome.broken}")
    return 0 if outcome.broken is None else 1


def _search(first: int, seconds: float, processes: int) -> int:
    print(f"first seed {first}, {seconds:g} seconds, {processes} processes", flush=True)
    count, found = search_at_once(first, seconds=seconds, processes=processes, progress=_tell)
    if found is not None:
        print(found)
        return 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate = count / (used.ru_utime + used.ru_stime) * 60
    print(f"{count} histories, every promise was kept; {rate:.0f} for each minute of a core")
    return 0


def _live(seed: int | None, seconds: float) -> int:
    logging.disable()
    if seed is not None:
        print(simulate(seed).text, end="")
        return 0
    first = random.SystemRandom().randrange(1 << 40)
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        simulate(first + count)
        count += 1
    print(f"{count} lives of a store, every promise was kept")
    return 0


def _hunt(first: int, histories: int, only: str, processes: int) -> int:
    wanted = [mutant for mutant in MUTANTS if only in mutant.name]
    missed = 0
    with ProcessPoolExecutor(processes) as pool:
        outcomes = pool.map(partial(_look_for, first=first, histories=histories), wanted)
        for mutant, (where, broken) in zip(wanted, outcomes, strict=True):
            missed += broken is None
            found = f"found in {where}: {broken}" if broken is not None else f"NOT FOUND in {where}"
            print(f"{mutant.name}\n    {found}", flush=True)
    return 1 if missed else 0


def _look_for(mutant: Mutant, first: int, histories: int) -> tuple[str, str | None]:
    """Where it was looked for, and what was found. A bug of the store shows in its own lives first."""
    with applied(mutant):
        if mutant.is_of_the_store and (broken := _look_at_lives(first)) is not None:
            return broken
        count, found = look(first, histories)
        return f"{count} histories", None if found is None else str(found)


def _look_at_lives(first: int) -> tuple[str, str] | None:
    logging.disable()
    try:
        for seed in range(first, first + _LIVES):
            try:
                simulate(seed)
            except AssertionError as broken:
                return f"{seed - first + 1} lives of the store alone", str(broken)
    finally:
        logging.disable(logging.NOTSET)
    return None


def _tell(count: int, taken: float) -> None:
    print(f"{count} histories, {count / taken * 60:.0f} a minute", flush=True)


if __name__ == "__main__":
    sys.exit(main())
