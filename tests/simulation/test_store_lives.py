"""The store on a disk that tears, fills up, fails and flips bits; see `simulation.store_lives` for what must hold."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from simulation.store_lives import simulate
from support.seeds import seed_of_the_code

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def _without_log() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", range(0, 100, 25))
@pytest.mark.promise("P-history-5")
def test_whatever_the_disk_does_nothing_is_wrong_and_every_hole_is_told(first: int) -> None:
    for seed in range(first, first + 25):
        simulate(seed)


def test_new_lives_hold_as_well() -> None:
    first = seed_of_the_code()
    for seed in range(first, first + 50):
        simulate(seed)


def test_the_same_seed_lives_the_same_lives() -> None:
    for seed in range(5):
        assert simulate(seed).text == simulate(seed).text
