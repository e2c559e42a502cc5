from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.process import StderrLog
from sandbox_agent.redaction import MARK, Redactor


def logged(*chunks: bytes, kept: int = 50) -> tuple[StderrLog, list[str]]:
    seen: list[str] = []
    log = StderrLog(seen.append, kept=kept)
    for chunk in chunks:
        log.feed(chunk)
    log.finish()
    return log, seen


def numbered(count: int) -> list[str]:
    return [f"line {number}" for number in range(1, count + 1)]


def test_few_lines_are_all_head() -> None:
    log, seen = logged(b"one\ntwo\nthr", b"ee")
    summary = log.summary()
    assert (summary.head, summary.tail, summary.truncated, summary.total_lines) == (
        ["one", "two", "three"],
        [],
        False,
        3,
    )
    assert seen == ["one", "two", "three"]


def test_fifty_lines_are_kept_from_either_end_and_all_are_counted() -> None:
    log, seen = logged("\n".join(numbered(1000)).encode())
    summary = log.summary()
    assert summary.head == numbered(50)
    assert summary.tail == numbered(1000)[-50:]
    assert (summary.truncated, summary.total_lines) == (True, 1000)
    assert seen == numbered(1000)


def test_a_hundred_lines_are_not_truncated() -> None:
    summary = logged("\n".join(numbered(100)).encode())[0].summary()
    assert summary.head + summary.tail == numbered(100)
    assert not summary.truncated


@given(st.integers(0, 40), st.integers(1, 10))
def test_head_and_tail_are_the_two_ends_without_overlap(count: int, kept: int) -> None:
    log, _ = logged("\n".join(numbered(count)).encode(), kept=kept)
    summary = log.summary()
    assert summary.head == numbered(count)[:kept]
    assert summary.tail == numbered(count)[kept:][-kept:]
    assert summary.truncated == (len(summary.head) + len(summary.tail) < count)


@given(st.lists(st.binary(max_size=20)))
def test_bytes_of_any_kind_become_printable_lines(chunks: list[bytes]) -> None:
    _, seen = logged(*chunks)
    assert all(character.isprintable() or character == "\t" for line in seen for character in line)


def test_colours_and_control_characters_do_not_reach_the_log() -> None:
    assert logged(b"\x1b[31mred\x1b[0m\a\n")[1] == ["\ufffd[31mred\ufffd[0m\ufffd"]


def test_long_lines_are_cut_and_endless_ones_are_dropped_with_their_size() -> None:
    _, seen = logged(b"x" * 5000 + b"\n", b"y" * (3 << 20), b"\nend\n")
    assert seen == ["x" * 2000, f"[a line of {3 << 20} bytes was dropped]", "end"]


def test_of_a_flood_a_bounded_part_is_told_and_the_rest_is_counted() -> None:
    now = [0.0]
    seen: list[str] = []
    log = StderrLog(seen.append, clock=lambda: now[0])
    for _ in range(100):
        log.feed((b"x" * 999 + b"\n" + b"y" * 99 + b"\n") * 100)
    assert sum(map(len, seen)) <= 1 << 18
    told = len(seen)
    now[0] = 1.0
    log.feed(b"later\n")
    assert seen[told:] == [f"[{20_000 - told} lines were left out: too many at once]", "later"]
    assert log.summary().total_lines == 20_001


def test_after_a_flood_the_count_is_told_at_the_end_at_the_latest() -> None:
    seen: list[str] = []
    log = StderrLog(seen.append, clock=lambda: 0.0)
    log.feed(b"x\n" * 10_000)
    log.finish()
    assert seen[-1].endswith("lines were left out: too many at once]")


def test_secrets_are_taken_out_of_what_is_logged_and_of_what_clients_are_told() -> None:
    seen: list[str] = []
    redactor = Redactor(["s3cret-value"])
    log = StderrLog(seen.append, clean=redactor.head)
    log.feed(b"key s3cret-value\n" + b"x" * 1995 + b"s3cret-value\n")
    summary = log.summary()
    assert seen == summary.head == [f"key {MARK}", "x" * 1995 + MARK]
