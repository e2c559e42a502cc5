"""The judge of the runs under faults finds every fault that is put into what clients saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.history import chunk, prompt, text
from support.witness import Record, Stay, judge


def sound() -> Record:
    """Two turns; one follower stays at a node, the other changes it after entry 3."""
    messages: list[dict[str, Any]] = []
    for turn in ("turn-1", "turn-2"):
        messages += [prompt(turn, text(turn)), chunk(turn, "agent_thought_chunk"), chunk("tick 1"), chunk("tick 2")]
    history = [{"sequence": at, "envelope": message} for at, message in enumerate(messages, 1)]
    told = [(at, message) for at, message in enumerate(messages, 1) if message["method"] == "session/update"]
    followers = [[Stay(0, list(told))], [Stay(0, told[:2]), Stay(3, told[2:])]]
    return Record("s", history, {"turn-1": "ok", "turn-2": "ok"}, followers)


def leave_out(seen: Record) -> None:
    del seen.followers[0][0].told[2]


def leave_out_and_tell_later(seen: Record) -> None:
    (stay,) = seen.followers[0]
    seen.followers[0] = [Stay(0, [stay.told[0], stay.told[2]]), Stay(2, [stay.told[1], *stay.told[3:]])]


def end_early(seen: Record) -> None:
    seen.followers[1][1].told.pop()


def tell_twice(seen: Record) -> None:
    told = seen.followers[0][0].told
    told.insert(3, told[2])


def tell_again_at_another_node(seen: Record) -> None:
    first, second = seen.followers[1]
    second.told.insert(0, first.told[-1])


def swap(seen: Record) -> None:
    told = seen.followers[0][0].told
    told[1], told[2] = told[2], told[1]


def invent(seen: Record) -> None:
    seen.followers[0][0].told.append((9, chunk("tick 3")))


def change(seen: Record) -> None:
    seen.followers[0][0].told[1] = (3, chunk("something else"))


def run_twice(seen: Record) -> None:
    at = len(seen.history) + 1
    again = chunk("turn-1", "agent_thought_chunk")
    seen.history.append({"sequence": at, "envelope": again})
    for stays in seen.followers:
        stays[-1].told.append((at, again))


def forget_answer(seen: Record) -> None:
    seen.turns["turn-2"] = None


def answer_what_never_ran(seen: Record) -> None:
    seen.turns["turn-3"] = "ok"


def tear_a_hole(seen: Record) -> None:
    del seen.history[4]  # a prompt, of which followers are told nothing


def test_what_is_sound_is_not_blamed() -> None:
    assert judge(sound()) == []


@pytest.mark.parametrize(
    ("put_in", "kind"),
    [
        (leave_out, "lost"),
        (leave_out_and_tell_later, "lost"),
        (end_early, "lost"),
        (tell_twice, "doubled"),
        (tell_again_at_another_node, "doubled"),
        (swap, "out of order"),
        (invent, "not in history"),
        (change, "not in history"),
        (run_twice, "run twice"),
        (forget_answer, "unanswered"),
        (answer_what_never_ran, "lost"),
        (tear_a_hole, "holes"),
    ],
)
def test_a_fault_that_was_put_in_is_found(put_in: Callable[[Record], None], kind: str) -> None:
    seen = sound()
    put_in(seen)
    assert kind in {fault.kind for fault in judge(seen)}
