from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.core.window import Gap, Lines, Stored, Window

A, B = StreamKey("session:a:1"), StreamKey("session:b:1")


class Store:
    """What the real store is to a window: every line, by stream and sequence."""

    def __init__(self) -> None:
        self.lines: dict[StreamKey, list[bytes]] = {}

    def append(self, stream: StreamKey, lines: list[bytes]) -> int:
        kept = self.lines.setdefault(stream, [])
        kept += lines
        return len(kept) - len(lines) + 1

    def read(self, piece: Stored) -> list[bytes]:
        return self.lines[piece.stream][piece.sequence - 1 : piece.sequence - 1 + piece.count]


def read_all(window: Window, store: Store, after: int, **limits: int) -> tuple[list[Gap], list[bytes]]:
    """Follow the pieces to the end; each begins where the one before it stopped."""
    gaps, lines = [], []
    while (piece := window.read(after, **limits)) is not None:
        assert piece.first == after + 1
        match piece:
            case Lines():
                assert piece.lines
                lines += piece.lines
                after += len(piece.lines)
            case Stored():
                assert piece.count > 0
                got = store.read(piece)
                assert len(got) == piece.count
                lines += got
                after += piece.count
            case Gap():
                assert piece.last >= piece.first
                gaps.append(piece)
                after = piece.last
    assert after == window.last_id
    return gaps, lines


appends = st.lists(
    st.tuples(
        st.sampled_from([A, B, StreamKey("connection:c")]),
        st.lists(st.binary(max_size=12), min_size=1, max_size=5),
        st.booleans(),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(
    appends,
    st.sampled_from([0, 1, 16, 40, 100, 1000]),
    st.sampled_from([4, 5, 9, 1000]),
    st.integers(1, 60),
    st.data(),
)
def test_reading_piece_by_piece_gives_every_line_that_is_kept(
    appended: list[tuple[StreamKey, list[bytes], bool]],
    memory_limit: int,
    run_limit: int,
    max_bytes: int,
    data: st.DataObject,
) -> None:
    window, store, model = Window(memory_limit=memory_limit, run_limit=run_limit), Store(), []
    for stream, lines, has_foreign in appended:
        if has_foreign:
            store.append(stream, [b"recorded for others only"])
        window.append(stream, store.append(stream, lines), lines)
        model += lines
        assert window.last_id == len(model)
        assert window.oldest_id <= window.last_id
        assert window.memory <= max(memory_limit, (memory_limit >> 4) + sum(map(len, lines)))
    after = data.draw(st.integers(0, len(model)))
    gaps, got = read_all(window, store, after, max_bytes=max_bytes)
    lost = max(0, window.oldest_id - 1 - after)
    assert gaps == ([Gap(after + 1, after + lost)] if lost else [])
    assert got == model[after + lost :]


def test_an_empty_window_has_nothing_to_read() -> None:
    window = Window(memory_limit=4 << 20, run_limit=1000)
    assert (window.last_id, window.oldest_id, window.memory, window.read(0)) == (0, 1, 0, None)


def test_ids_begin_at_one_and_the_end_is_none() -> None:
    window = Window(memory_limit=4 << 20, run_limit=1000)
    window.append(A, 1, [b"x", b"y"])
    window.append(B, 7, [b"z"])
    assert window.read(0) == Lines(1, [b"x", b"y", b"z"])
    assert window.read(1) == Lines(2, [b"y", b"z"])
    assert window.read(3) is None
    assert window.streams == [A, B]


def test_what_was_read_does_not_grow_with_the_window() -> None:
    window = Window(memory_limit=4 << 20, run_limit=1000)
    given_lines = [b"x"]
    window.append(A, 1, given_lines)
    piece = window.read(0)
    window.append(A, 2, [b"y"])
    assert piece == Lines(1, [b"x"])
    assert given_lines == [b"x"]


def test_a_piece_holds_at_least_one_line_and_otherwise_keeps_to_its_bound() -> None:
    window = Window(memory_limit=4 << 20, run_limit=1000)
    window.append(A, 1, [b"12345678", b"ab", b"cd", b"ef"])
    assert window.read(0, max_bytes=4) == Lines(1, [b"12345678"])
    assert window.read(1, max_bytes=4) == Lines(2, [b"ab", b"cd"])
    assert window.read(3, max_bytes=4) == Lines(4, [b"ef"])


def test_what_leaves_memory_is_found_in_the_store() -> None:
    window = Window(memory_limit=16, run_limit=1000)
    for number in range(10):
        window.append(A, 100 + number, [b"1234"])
    assert window.memory <= 16
    assert window.oldest_id == 1
    piece = window.read(2)
    assert isinstance(piece, Stored)
    assert (piece.first, piece.stream, piece.sequence) == (3, A, 102)
    assert piece.first + piece.count - 1 <= window.last_id


def test_neighbours_of_one_stream_cost_one_pointer_however_many_they_are() -> None:
    window = Window(memory_limit=64, run_limit=4)
    for number in range(1, 2000):
        window.append(A, number, [b"12345678"])
    assert window.oldest_id == 1
    piece = window.read(0)
    assert isinstance(piece, Stored)
    assert piece.count > 1900


def test_lines_of_two_streams_in_turn_keep_their_order_and_their_places() -> None:
    window, store, model = Window(memory_limit=8, run_limit=1000), Store(), []
    for number in range(50):
        stream, line = (A, B)[number % 2], b"%d" % number
        window.append(stream, store.append(stream, [line]), [line])
        model.append(line)
    assert read_all(window, store, 0) == ([], model)


def test_past_the_last_pointer_there_is_a_gap_that_says_how_wide_it_is() -> None:
    window, store = Window(memory_limit=4, run_limit=8), Store()
    for number in range(40):
        stream = (A, B)[number % 2]
        window.append(stream, store.append(stream, [b"1234"]), [b"1234"])
    gap = window.read(3)
    assert isinstance(gap, Gap)
    assert (gap.first, gap.last) == (4, window.oldest_id - 1)
    gaps, lines = read_all(window, store, 3)
    assert gaps == [gap]
    assert len(lines) == 40 - gap.last


def test_memory_stays_bounded_while_nobody_reads() -> None:
    window = Window(memory_limit=1 << 16, run_limit=1000)
    for number in range(5_000):
        window.append(A, 1 + number * 10, [b"x" * 100] * 10)
        assert window.memory <= (1 << 16)


@pytest.mark.parametrize("size", [1 << 10, 1 << 20])
def test_one_line_over_the_limit_stays_until_the_next_one_comes(size: int) -> None:
    window = Window(memory_limit=1 << 10, run_limit=1000)
    window.append(A, 1, [b"x" * (size + 1)])
    assert isinstance(window.read(0), Lines)
    window.append(A, 2, [b"y"])
    assert window.memory == 1
    assert window.read(0) == Stored(1, A, 1, 1)
    assert window.read(1) == Lines(2, [b"y"])


def test_events_of_a_deleted_record_are_not_looked_for_in_one_of_the_same_name() -> None:
    window = Window(memory_limit=1 << 10, run_limit=1000)
    window.append(A, 1, [b"x" * 1025])
    window.append(B, 1, [b"y"])
    window.forget(A)
    window.forget(A)
    window.append(A, 1, [b"z" * 1025])
    window.append(B, 2, [b"y"])
    assert window.read(0) == Stored(1, StreamKey(f"deleted:{A}"), 1, 1)
    assert window.read(2) == Stored(3, A, 1, 1)
