"""What will be tried, all of it from one seed: the cast, and the steps in order.

Every step has a number of its own from which its details follow, so that the others mean the same when one is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from simulation.agent import Character
from simulation.speech import MANNERS

_VERBS = ("load", "resume", "fork", "close", "delete")
_WEIGHTS = {
    "connect": 3,
    "disconnect": 1,
    "follow": 3,
    "unfollow": 1,
    "watch": 1,
    "unwatch": 0.5,
    "new": 5,
    "prompt": 16,
    "cancel": 2,
    "take_back": 1,
    "close": 1,
    "delete": 1,
    "terminate": 0.4,
    "detach": 1,
    "load": 2,
    "resume": 1,
    "fork": 1,
    "answer": 3,
    "read": 2,
    "list": 1,
    "configure": 1,
    "misuse": 1,
    "disk_full": 1,
    "disk_fails": 1,
    "disk_stumbles": 1,
    "disk_well": 2,
    "agent_dies": 1,
    "wait": 5,
    "kill": 1.2,
    "stop": 0.7,
    "power": 0.2,
    "flip": 0.2,
}
_MOTIFS = (
    ("disk_full", "prompt", "prompt", "kill", "disk_well", "connect", "prompt", "prompt"),
    ("disk_full", "prompt", "wait", "disk_well", "prompt", "wait", "kill"),
    ("kill", "disk_fails", "connect", "prompt", "read", "disk_well", "prompt"),
    ("prompt", "kill", "connect", "prompt", "kill", "connect", "prompt"),
    ("prompt", "kill", "connect", "disk_stumbles", "prompt", "disk_stumbles", "prompt", "read"),
    ("prompt", "disk_stumbles", "prompt", "prompt", "new", "kill", "connect", "read"),
    ("prompt", "wait", "close", "wait", "load", "close", "wait", "prompt", "close"),
)
"""What seldom comes about by chance, and has broken promises before."""
PAUSES = (0.0, 0.0, 0.0, 0.0005, 0.004, 0.06, 0.3, 1.5, 7.0)
"""Seconds of the virtual clock between two steps."""


class Step(NamedTuple):
    kind: str
    number: int

    def chance(self) -> Random:
        return Random(self.number)


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    agents: dict[str, Character]
    clients: int
    memory_bytes: int
    window_bytes: int
    linger: float
    steps: tuple[Step, ...]
    retention: float | None = None
    """Seconds that history is kept."""
    feed_limit: int = 1000
    """Changes that may wait for one who follows the feed."""

    def only(self, kept: Sequence[int]) -> Plan:
        """The same with some of the steps."""
        return replace(self, steps=tuple(self.steps[index] for index in kept if index < len(self.steps)))


def make_plan(seed: int) -> Plan:
    chance = Random(seed)
    agents = {f"agent{number}": _character(chance) for number in range(chance.choice([1, 1, 2]))}
    kinds = chance.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()), k=chance.choice([8, 20, 40, 60]))
    if chance.random() < 0.6:
        place = chance.randint(0, len(kinds))
        kinds[place:place] = chance.choice(_MOTIFS)
    beginning = ["connect", "new", "prompt"]
    steps = tuple(Step(kind, chance.randrange(1 << 32)) for kind in [*beginning, *kinds])
    return Plan(
        seed=seed,
        agents=agents,
        clients=chance.choice([1, 2, 3]),
        memory_bytes=chance.choice([6000, 1 << 20]),
        window_bytes=chance.choice([600, 1 << 20]),
        linger=chance.choice([0.0, 0.2, 30.0]),
        retention=chance.choice([None, None, None, 5.0]),
        feed_limit=chance.choice([2, 1000, 1000]),
        steps=steps,
    )


def _character(chance: Random) -> Character:
    can = frozenset(verb for verb in _VERBS if chance.random() < 0.7)
    return Character(
        can=can,
        has_a_process_per_session=chance.random() < 0.4,
        counts_anew=chance.random() < 0.6,
        replays_late=chance.random() < 0.3,
        talks_early=chance.random() < 0.3,
        ignores_cancel=chance.random() < 0.2,
        ignores_eof=chance.random() < 0.2,
        odd_answers=chance.random() < 0.1,
        speaks=chance.choice([(1,), (1,), (1,), (2,), (2,), (1, 2)]),
        acknowledges=chance.choice(MANNERS),
    )
