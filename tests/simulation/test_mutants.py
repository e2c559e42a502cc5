"""Bugs that are put back are found: the quick ones here, all of them by `python -m simulation --mutants`."""

from __future__ import annotations

import pytest

from simulation.campaign import look
from simulation.mutants import MUTANTS, Mutant, applied
from simulation.store_lives import simulate

QUICK = {
    "the close of a connection forgets who waits at it": "every request is answered",
    "prompts that wait in a session that is stopped are forgotten": "every request is answered",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_fits_the_source(mutant: Mutant) -> None:
    with applied(mutant):
        pass


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", QUICK)
def test_an_old_bug_is_found_when_it_is_put_back(name: str) -> None:
    (mutant,) = [mutant for mutant in MUTANTS if mutant.name == name]
    with applied(mutant):
        _, broken = look(0, 100)
    assert broken is not None
    assert broken.promise == QUICK[name]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", ["an error of the database is taken for 'no entries'", "the journal is cleared before the commit"]
)
def test_an_old_bug_of_the_store_is_found_in_its_own_lives(name: str) -> None:
    (mutant,) = [mutant for mutant in MUTANTS if mutant.name == name]
    with applied(mutant), pytest.raises(AssertionError):  # noqa: PT012 - one of them
        for seed in range(40):
            simulate(seed)
