"""Server-sent events out of bytes, however they are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.client.rpc.sse import EventParser, ServerEvent

STREAM = b': open\n\nevent: message\nid: 1\ndata: {"a":1}\n\n: heartbeat\n\nevent: message\nid: 2\ndata: {"b":2}\n\n'
EVENTS = [ServerEvent(1, b'{"a":1}'), ServerEvent(2, b'{"b":2}')]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    parser = EventParser()
    points = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in pairwise(points)]
    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS


def test_half_an_event_gives_nothing() -> None:
    assert EventParser().feed(b"id: 3\ndata: {}") == []


def test_data_over_several_lines_is_one() -> None:
    assert EventParser().feed(b"data: a\ndata: b\n\n") == [ServerEvent(None, b"a\nb")]
