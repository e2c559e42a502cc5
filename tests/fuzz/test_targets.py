"""Each target over its kept corpus, and over some new inputs made of it: `make fuzz` in small."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from fuzz.inputs import CORPUS, corpus, mutations
from fuzz.targets import NAMES, target
from support.seeds import seed_of_the_code

FRESH = 150
KEPT = [(name, path) for name in NAMES for path in corpus(name)]


@pytest.mark.parametrize(("name", "path"), KEPT, ids=[f"{name}/{path.name}" for name, path in KEPT])
def test_an_input_of_the_corpus_breaks_no_promise(name: str, path: Path) -> None:
    target(name).check(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_new_inputs_break_no_promise(name: str) -> None:
    seeds = [path.read_bytes() for path in corpus(name)]
    for data in itertools.islice(mutations(seeds, random.Random(seed_of_the_code())), FRESH):
        try:
            target(name).check(data)
        except Exception:
            print(f"keep it as a file in {CORPUS / name}: {data!r}")
            raise


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == sorted(NAMES)
