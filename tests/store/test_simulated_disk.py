"""The store on a disk that tears, fills up, fails and flips bits; see `support.simulated_store` for what must hold."""

from __future__ import annotations

import logging

import pytest

from support.simulated_store import simulate


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_whatever_the_disk_does_nothing_is_wrong_and_every_hole_is_told(first: int) -> None:
    logging.disable()
    try:
        for seed in range(first, first + 50):
            simulate(seed)
    finally:
        logging.disable(logging.NOTSET)
