"""The numbered log of a program's output: no holes, a bound, and what was cut is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_agent.process import OutputLog

DEADLINE = 20.0


async def read_all(log: OutputLog, after: int = 0) -> tuple[list[int], bytes, list[tuple[int, int]]]:
    """Numbers, content and cuts, until there is no more now."""
    reader = log.read_from(after)
    numbers: list[int] = []
    content = b""
    cuts: list[tuple[int, int]] = []
    async with asyncio.timeout(DEADLINE):
        while reader.position < log.last:
            piece = await reader.take()
            cuts += [piece.cut] if piece.cut else []
            numbers += [entry.sequence for entry in piece.entries]
            content += b"".join(entry.content for entry in piece.entries)
    return numbers, content, cuts


async def test_entries_are_numbered_from_one_and_read_back_from_any_of_them(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=1 << 20)
    for number in range(1, 6):
        log.append("stdout", b"%d\n" % number, number)
    assert await read_all(log) == ([1, 2, 3, 4, 5], b"1\n2\n3\n4\n5\n", [])
    assert await read_all(log, 3) == ([4, 5], b"4\n5\n", [])
    assert await read_all(log, 99) == ([], b"", [])


async def test_what_memory_does_not_hold_comes_from_disk(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=8 << 20)
    for number in range(200):
        log.append("pty", bytes([number]) * 20_000, 0)
    numbers, content, cuts = await read_all(log)
    assert (numbers, cuts) == (list(range(1, 201)), [])
    assert content == b"".join(bytes([number]) * 20_000 for number in range(200))


async def test_a_long_piece_is_several_entries(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=1 << 20)
    log.append("stdout", b"x" * 200_000, 0)
    numbers, content, _ = await read_all(log)
    assert numbers == [1, 2, 3, 4]
    assert content == b"x" * 200_000


async def test_the_oldest_is_cut_at_the_limit_and_told_once(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=100_000)
    for _ in range(1000):
        log.append("stdout", b"y" * 1000, 0)
    assert 50_000 < log.bytes_kept <= 101_000
    assert sum(path.stat().st_size for path in (tmp_path / "log").iterdir()) < 120_000
    numbers, _, cuts = await read_all(log)
    assert numbers == list(range(log.first, 1001))
    assert cuts == [(1, log.first - 1)]


async def test_a_reader_that_is_overtaken_goes_on_where_the_log_begins(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=1 << 20)
    reader = log.read_from(0)
    for _ in range(100):
        log.append("stdout", b"z" * 10_000, 0)
    first = await reader.take()
    for _ in range(400):
        log.append("stdout", b"z" * 10_000, 0)
    seen, cuts = [entry.sequence for entry in first.entries], []
    while reader.position < log.last:
        piece = await reader.take()
        cuts += [piece.cut] if piece.cut else []
        seen += [entry.sequence for entry in piece.entries]
    (cut,) = cuts
    assert seen == [*range(1, cut[0]), *range(cut[1] + 1, 501)]


async def test_a_follower_is_woken_by_output_and_by_the_end(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=1000)
    reader = log.read_from(0)
    taking = asyncio.create_task(reader.take(wait=DEADLINE))
    await asyncio.sleep(0)
    log.append("stdout", b"now", 0)
    assert [entry.content for entry in (await taking).entries] == [b"now"]
    ending = asyncio.create_task(reader.take(wait=DEADLINE))
    await asyncio.sleep(0)
    log.end()
    assert (await ending).entries == []
    assert reader.is_over


async def test_a_log_is_there_after_a_crash_without_its_torn_end(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=100_000)
    for number in range(60):
        log.append("stderr", b"%03d" % number * 1000, 7)
    newest = max((tmp_path / "log").iterdir())
    newest.write_bytes(newest.read_bytes()[:-10])
    found = OutputLog.restored(tmp_path / "log", limit=100_000)
    assert (found.first, found.last) == (log.first, 59)
    numbers, content, _ = await read_all(found, found.first - 1)
    assert numbers == list(range(found.first, 60))
    assert content == b"".join(b"%03d" % (number - 1) * 1000 for number in numbers)


async def test_a_part_that_is_lost_is_told_as_cut(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log", limit=4 << 20)
    for _ in range(300):
        log.append("stdout", b"a" * 10_000, 0)
    parts = sorted((tmp_path / "log").iterdir())
    parts[1].write_bytes(b"\xff" * 100)
    numbers, _, cuts = await read_all(log)
    (cut,) = cuts
    assert cut == (int(parts[1].stem), int(parts[2].stem) - 1)
    assert numbers == [*range(1, cut[0]), *range(cut[1] + 1, 301)]


async def test_a_disk_that_takes_nothing_leaves_the_newest(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = OutputLog(tmp_path / "file" / "log", limit=1 << 20)
    for _ in range(100):
        log.append("stdout", b"b" * 10_000, 0)
    numbers, _, cuts = await read_all(log)
    assert numbers == list(range(log.first, 101))
    assert cuts == [(1, log.first - 1)]
    log.end()
    assert (await read_all(log))[0] == numbers


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 3000), max_size=60),
    limit=st.integers(1, 20_000),
    after=st.integers(0, 70),
)
async def test_whatever_is_printed_numbers_have_no_holes(
    tmp_path_factory: object, sizes: list[int], limit: int, after: int
) -> None:
    folder = tmp_path_factory.mktemp("log")  # type: ignore[attr-defined]
    log = OutputLog(folder / "log", limit=limit)
    for size in sizes:
        log.append("stdout", bytes(size), 0)
    entries = sum(size > 0 for size in sizes)
    assert log.last == entries
    numbers, _, cuts = await read_all(log, after)
    told = [number for first, last in cuts for number in range(first, last + 1)]
    assert told + numbers == list(range(min(after, entries) + 1, entries + 1))
    assert log.bytes_kept <= limit + 3000
