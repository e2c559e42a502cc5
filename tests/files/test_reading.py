from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox_agent.errors import Conflict, InvalidParams, NotFound, TooLarge, TooMany
from sandbox_agent.files import FileService
from support.limits import file_limits

CONTENT = bytes(range(256)) * 40


async def test_a_file_is_read_whole_and_by_ranges(confined: FileService, root: Path) -> None:
    (root / "f").write_bytes(CONTENT)
    async with await confined.open_for_read("f") as file:
        assert file.size == len(CONTENT)
        assert b"".join([chunk async for chunk in file.chunks(chunk=1000)]) == CONTENT
        assert b"".join([chunk async for chunk in file.chunks(100, 5000, chunk=700)]) == CONTENT[100:5100]
        assert b"".join([chunk async for chunk in file.chunks(len(CONTENT) - 1)]) == CONTENT[-1:]
        assert [chunk async for chunk in file.chunks(len(CONTENT))] == []


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1), (len(CONTENT) + 1, None), (1, len(CONTENT))])
async def test_a_range_beyond_the_file_is_refused(
    confined: FileService, root: Path, offset: int, length: int | None
) -> None:
    (root / "f").write_bytes(CONTENT)
    async with await confined.open_for_read("f") as file:
        with pytest.raises(InvalidParams, match="not within"):
            await anext(file.chunks(offset, length))


async def test_the_etag_changes_with_the_content_only(confined: FileService, root: Path) -> None:
    etags = []
    for content in (b"one", None, b"two"):
        if content is not None:
            await confined.write_bytes("f", content)
        async with await confined.open_for_read("f") as file:
            etags.append(file.etag)
    assert etags[0] == etags[1] != etags[2]
    assert etags[0].startswith('"')
    assert etags[0].endswith('"')


async def test_a_reader_keeps_its_version_while_the_file_is_replaced(confined: FileService, root: Path) -> None:
    await confined.write_bytes("f", b"old")
    async with await confined.open_for_read("f") as file:
        await confined.write_bytes("f", b"newer")
        assert b"".join([chunk async for chunk in file.chunks()]) == b"old"
        assert Path(file.send_path).read_bytes() == b"old"
        assert os.pread(file.fd, 10, 0) == b"old"
    with pytest.raises(ValueError, match="closed"):
        _ = file.send_path


async def test_a_file_that_is_cut_while_read_is_a_conflict_not_a_short_answer(
    confined: FileService, root: Path
) -> None:
    (root / "f").write_bytes(CONTENT)
    async with await confined.open_for_read("f") as file:
        os.truncate(root / "f", 10)
        with pytest.raises(Conflict, match="cut shorter"):
            _ = [chunk async for chunk in file.chunks(chunk=100)]


async def test_a_directory_cannot_be_read_as_a_file(confined: FileService, root: Path) -> None:
    (root / "dir").mkdir()
    with pytest.raises(Conflict, match="is a directory"):
        await confined.open_for_read("dir")
    with pytest.raises(NotFound):
        await confined.open_for_read("missing")


async def test_read_bytes_refuses_more_than_fits_one_message(root: Path) -> None:
    service = FileService([root], root, file_limits(max_inline_bytes=10), data_dir=None)
    (root / "small").write_bytes(b"x" * 10)
    (root / "large").write_bytes(b"x" * 11)
    assert await service.read_bytes("small") == b"x" * 10
    with pytest.raises(TooLarge, match="11 bytes"):
        await service.read_bytes("large")
    await service.close()


async def test_open_files_are_bounded_and_closing_one_makes_room(root: Path) -> None:
    service = FileService([root], root, file_limits(max_streams=1), data_dir=None)
    (root / "f").touch()
    file = await service.open_for_read("f")
    with pytest.raises(TooMany):
        await service.open_for_read("f")
    file.close()
    file.close()
    async with await service.open_for_read("f"):
        pass
    await service.close()


async def test_downloads_that_nobody_reads_leave_uploads_and_small_reads_and_writes_free(root: Path) -> None:
    service = FileService([root], root, file_limits(max_streams=2), data_dir=None)
    (root / "f").write_text("text")

    async def body() -> AsyncIterator[bytes]:
        yield b"more"

    async with await service.open_for_read("f"), await service.open_for_read("f"):
        with pytest.raises(TooMany, match="2 downloads"):
            await service.open_for_read("f")
        assert await service.read_bytes("f") == b"text"
        await service.write_bytes("g", b"text")
        await service.write_stream("h", body())
    assert sorted(path.name for path in root.iterdir()) == ["f", "g", "h"]
    await service.close()


async def test_a_download_that_nobody_reads_gives_way_to_one_that_is_read(root: Path) -> None:
    service = FileService([root], root, file_limits(max_streams=2, stall_seconds=0.05), data_dir=None)
    (root / "f").write_text("text")
    unread, slow = await service.open_for_read("f"), await service.open_for_read("f")
    await asyncio.sleep(0.1)
    reading = slow.chunks(chunk=1)
    assert await anext(reading) == b"t"
    async with await service.open_for_read("f") as file:
        assert [chunk async for chunk in file.chunks()] == [b"text"]
        assert await anext(reading) == b"e"
        with pytest.raises(Conflict, match="too slowly"):
            await anext(unread.chunks())
    unread.close()
    slow.close()
    await service.close()


_LARGE = """
import asyncio, hashlib, resource, sys
from pathlib import Path
from sandbox_agent.files import FileService
from sandbox_agent.serve import file_limits
from sandbox_agent.settings import Settings

SIZE = 256 * 1024 * 1024
sent, got = hashlib.sha1(), hashlib.sha1()

async def body():
    for number in range(SIZE // 65536):
        piece = number.to_bytes(4, "big") * 16384
        sent.update(piece)
        yield piece

async def main():
    service = FileService([], Path(sys.argv[1]), file_limits(Settings()), data_dir=None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await service.write_stream("large", body())
    assert result.bytes_written == SIZE
    async with await service.open_for_read("large") as file:
        async for chunk in file.chunks():
            got.update(chunk)
    await service.close()
    assert sent.digest() == got.digest()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

asyncio.run(main())
"""


@pytest.mark.promise("P-files-5")
def test_256_mib_written_and_read_cost_a_few_mib_of_memory(root: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _LARGE, str(root)], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    grown_kib = int(done.stdout)
    assert grown_kib < 32 * 1024
    (root / "large").unlink()
