from __future__ import annotations

import hashlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox_agent.core.lines import LineSplitter, OversizedLine
from support.limits import LINE_BYTES

Line = bytes | OversizedLine

pieces = st.lists(
    st.lists(st.sampled_from([b"a", b"{}", b"\r", b"\n", b"\xff"]), max_size=4).map(b"".join) | st.binary(max_size=9)
)


def split(chunks: list[bytes], cap: int = LINE_BYTES) -> list[Line]:
    splitter = LineSplitter(cap)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.finish()


def expected(stream: bytes, cap: int = LINE_BYTES) -> list[Line]:
    lines: list[Line] = []
    for line in stream.split(b"\n"):
        if len(line) > cap:
            lines.append(OversizedLine(len(line), hashlib.sha256(line).hexdigest()))
        elif stripped := line.removesuffix(b"\r"):
            lines.append(stripped)
    return lines


@settings(max_examples=400)
@given(pieces)
@example([b"\r", b"\n"])
def test_any_chunking_gives_the_same_lines(chunks: list[bytes]) -> None:
    assert split(chunks) == expected(b"".join(chunks))


@given(pieces, st.integers(0, 12))
def test_any_chunking_drops_the_same_lines_over_the_cap(chunks: list[bytes], cap: int) -> None:
    assert split(chunks, cap) == expected(b"".join(chunks), cap)


@given(pieces, st.integers(0, 12))
def test_never_holds_more_than_the_cap(chunks: list[bytes], cap: int) -> None:
    splitter = LineSplitter(cap)
    for chunk in chunks:
        splitter.feed(chunk)
        assert splitter.pending <= cap


def test_a_line_is_given_as_soon_as_it_ends() -> None:
    splitter = LineSplitter(LINE_BYTES)
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.pending == 2
    assert splitter.feed(b"o\n") == [b"two"]
    assert splitter.finish() == []


def test_the_last_line_needs_no_line_feed() -> None:
    assert split([b"one\ntwo\r"]) == [b"one", b"two"]


def test_a_line_of_exactly_the_cap_is_kept() -> None:
    assert split([b"12345678\n"], cap=8) == [b"12345678"]
    assert split([b"1234", b"5678", b"\n"], cap=8) == [b"12345678"]


def test_lines_after_one_over_the_cap_come_through() -> None:
    big = b"x" * 100
    dropped = OversizedLine(100, hashlib.sha256(big).hexdigest())
    assert split([b"a\n" + big + b"\nb\n"], cap=8) == [b"a", dropped, b"b"]
    assert split([b"a\n" + big[:50], big[50:], b"\nb\n"], cap=8) == [b"a", dropped, b"b"]


def test_an_unfinished_line_over_the_cap_is_told_at_the_end() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"123456") == []
    assert splitter.finish() == [OversizedLine(6, hashlib.sha256(b"123456").hexdigest())]
    assert splitter.feed(b"ok\n") == [b"ok"]


def test_lines_are_64_mebibytes_long_at_most_by_default() -> None:
    assert LINE_BYTES == 64 * 1024 * 1024
    assert split([b"x" * LINE_BYTES, b"\n"]) == [b"x" * LINE_BYTES]
    assert isinstance(split([b"x" * LINE_BYTES, b"x\n"])[0], OversizedLine)
