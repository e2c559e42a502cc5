"""Many histories, one seed after another, until a promise is broken or the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from simulation.facts import Broken
from simulation.history import Outcome, run_history
from simulation.plan import make_plan
from simulation.shrink import shrink

_TRIES = 300
_SHARE = 20
"""Histories that a process takes on at a time."""


@dataclass(frozen=True, slots=True)
class Found:
    """A seed that breaks a promise, and the steps of its history that are needed for it."""

    seed: int
    steps: tuple[int, ...]
    broken: Broken

    @property
    def command(self) -> str:
        return f"PYTHONPATH=tests .venv/bin/python -m simulation --seed {self.seed} --steps {_spelled(self.steps)}"

    def __str__(self) -> str:
        return f"seed {self.seed}, {len(self.steps)} steps: {self.broken}\nreplay it: {self.command}"


def replay(seed: int, steps: Sequence[int] | None = None) -> Outcome:
    """The history of a seed, with all of its steps or some."""
    plan = make_plan(seed)
    return run_history(plan if steps is None else plan.only(steps))


def search(
    first: int,
    *,
    seconds: float = float("inf"),
    histories: int | None = None,
    progress: Callable[[int, float], None] = lambda count, taken: None,
) -> tuple[int, Found | None]:
    """Go on until something is found, the seconds are over or so many histories are; how many there were."""
    started = told = time.monotonic()
    count = 0
    while (histories is None or count < histories) and time.monotonic() - started < seconds:
        outcome = replay(first + count)
        count += 1
        if outcome.broken is not None:
            return count, shrunk(first + count - 1, outcome.broken)
        if time.monotonic() - told > 5.0:
            told = time.monotonic()
            progress(count, told - started)
    return count, None


def search_at_once(
    first: int,
    *,
    seconds: float,
    processes: int,
    progress: Callable[[int, float], None] = lambda count, taken: None,
) -> tuple[int, Found | None]:
    """As `search`, in several processes."""
    started = told = time.monotonic()
    count, following = 0, first
    under_way: dict[Future[tuple[int, Broken | None]], int] = {}
    with ProcessPoolExecutor(processes) as pool:
        while under_way or time.monotonic() - started < seconds:
            while len(under_way) < processes and time.monotonic() - started < seconds:
                under_way[pool.submit(look, following, _SHARE)] = following
                following += _SHARE
            for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                share = under_way.pop(done)
                tried, broken = done.result()
                count += tried
                if broken is not None:
                    return count, shrunk(share + tried - 1, broken)
            if time.monotonic() - told > 5.0:
                told = time.monotonic()
                progress(count, told - started)
    return count, None


def look(first: int, histories: int) -> tuple[int, Broken | None]:
    """The first promise that so many histories break, and how many it took."""
    for seed in range(first, first + histories):
        broken = replay(seed).broken
        if broken is not None:
            return seed - first + 1, broken
    return histories, None


def shrunk(seed: int, broken: Broken) -> Found:
    """The same promise broken by fewer steps."""
    every = range(len(make_plan(seed).steps))
    found: dict[tuple[int, ...], Broken] = {tuple(every): broken}

    def breaks(steps: Sequence[int]) -> bool:
        outcome = replay(seed, steps)
        if outcome.broken is None or outcome.broken.promise != broken.promise:
            return False
        found[tuple(steps)] = outcome.broken
        return True

    kept = tuple(shrink(every, breaks, tries=_TRIES))
    return Found(seed, kept, found[kept])


def _spelled(steps: Sequence[int]) -> str:
    """`0-3,7` for 0, 1, 2, 3 and 7."""
    parts: list[str] = []
    start = previous = None
    for step in [*steps, None]:
        if previous is not None and step == previous + 1:
            previous = step
            continue
        if start is not None:
            parts.append(f"{start}" if start == previous else f"{start}-{previous}")
        start = previous = step
    return ",".join(parts)


def read_steps(spelled: str) -> list[int]:
    """The steps that `0-3,7` spells."""
    steps: list[int] = []
    for part in filter(None, spelled.split(",")):
        first, _, last = part.partition("-")
        steps += range(int(first), int(last or first) + 1)
    return steps
