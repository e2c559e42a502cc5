"""Of each line that a node passes on for a client of another, it tells where the line stands in which history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.hub.clients.stream import Batch
from sandbox_agent.hub.cluster.places import Places
from sandbox_agent.hub.cluster.wire import Run

KINDS = st.sampled_from(["history", "retold", "singly retold", "own", "joined"])
ACTS = st.lists(st.tuples(KINDS, st.sampled_from("ab"), st.integers(1, 4)))


def place(run: Run, line: int) -> int:
    first = run.sequence or run.entry
    return first + line if first and run.left is None else first


@given(acts=ACTS, sizes=st.lists(st.integers(1, 5), min_size=1))
def test_each_line_has_its_place_however_lines_are_batched(acts: list[tuple[str, str, int]], sizes: list[int]) -> None:
    places, expected, last = Places(), list[tuple[str | None, int]](), dict.fromkeys("ab", 0)
    for act, session, count in acts:
        first = last[session] + 1
        if act == "history":
            places.note(len(expected) + 1, Run(count, "mock", session, first))
            expected += [(session, sequence) for sequence in range(first, first + count)]
            last[session] += count
        elif act == "retold":
            last[session] += 1
            places.note(len(expected) + 1, Run(count, "mock", session, entry=last[session], left=0))
            expected += [(session, last[session])] * count
        elif act == "singly retold":
            places.note(len(expected) + 1, Run(count, "mock", session, entry=first))
            expected += [(session, sequence) for sequence in range(first, first + count)]
            last[session] += count
        elif act == "own":
            places.note(len(expected) + 1, Run(count, "", session))
            expected += [(session, 0)] * count
        else:  # something was written that nobody is told here
            last[session] += 1
            places.note(len(expected) + 1, Run(0, "mock", session, last[session] + 1))
    told: list[tuple[str | None, int]] = []
    after = 0
    for turn in range(len(expected)):
        size = min(sizes[turn % len(sizes)], len(expected) - after)
        if not size:
            break
        runs = places.take(Batch(after + 1, [b"x"] * size), after=after)
        assert sum(run.count for run in runs) == size
        told += [(run.session, place(run, n)) for run in runs for n in range(run.count)]
        after += size
    assert told == expected


def test_a_notice_in_place_of_lines_that_are_gone_stands_in_no_history() -> None:
    places = Places()
    places.note(1, Run(10, "mock", "one", 1))
    assert places.take(Batch(5, [b"gap"]), after=0) == [Run(1)]
    assert places.take(Batch(6, [b"x"] * 5), after=5) == [Run(5, "mock", "one", 6)]


@given(counts=st.lists(st.integers(1, 5), min_size=1), sizes=st.lists(st.integers(1, 5), min_size=1))
def test_the_lines_of_a_retold_entry_are_told_apart_from_others_until_the_last(
    counts: list[int], sizes: list[int]
) -> None:
    places, first = Places(), 1
    for entry, count in enumerate(counts, 1):
        places.note(first, Run(count, "mock", "one", entry=entry, left=0))
        first += count
    whole: list[tuple[int, int]] = []
    lines, after, turn = 0, 0, 0
    while after < sum(counts):
        size = min(sizes[turn % len(sizes)], sum(counts) - after)
        for run in places.take(Batch(after + 1, [b"x"] * size), after=after):
            lines += run.count
            if not run.left:
                whole.append((run.entry, lines))
                lines = 0
        after, turn = after + size, turn + 1
    assert whole == list(enumerate(counts, 1))


def test_entries_of_one_line_each_are_told_together() -> None:
    places = Places()
    for entry in range(1, 7):
        places.note(entry, Run(1, "mock", "one", entry=entry))
    assert places.take(Batch(1, [b"x"] * 4), after=0) == [Run(4, "mock", "one", entry=1)]
    assert places.take(Batch(5, [b"x"] * 2), after=4) == [Run(2, "mock", "one", entry=5)]
