"""Histories of seeds that were seen to keep every promise; `make simulate SECONDS=600` looks at new ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.campaign import Found, read_steps, replay, search
from simulation.facts import Broken
from simulation.shrink import shrink

HISTORIES = 150
"""Always the same ones: what breaks a promise once in thousands is to be looked for, not met by chance."""


@pytest.mark.timeout(300)  # a history that breaks a promise is shrunk before it is shown
def test_histories_keep_every_promise() -> None:
    count, found = search(0, histories=HISTORIES)
    assert found is None, f"\n{found}"
    assert count == HISTORIES


@pytest.mark.timeout(300)
def test_the_same_seed_gives_the_same_trace_byte_for_byte_in_this_process_and_in_another() -> None:
    here = [replay(seed).trace.text for seed in range(4)]
    assert [replay(seed).trace.text for seed in range(4)] == here
    program = "from simulation.campaign import replay\nfor seed in range(4): print(replay(seed).trace.digest)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.split() == [replay(seed).trace.digest for seed in range(4)]


def test_a_history_is_shrunk_to_the_steps_that_matter() -> None:
    kept = shrink(range(50), lambda steps: {7, 31} <= set(steps), tries=300)
    assert kept == [7, 31]


def test_the_command_to_replay_a_history_names_its_steps() -> None:
    found = Found(5, (0, 1, 2, 7, 9, 10), Broken("a promise", "how"))
    assert found.command.endswith("--seed 5 --steps 0-2,7,9-10")
    assert read_steps("0-2,7,9-10") == [0, 1, 2, 7, 9, 10]
