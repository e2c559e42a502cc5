from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from sandbox_agent.errors import Conflict, TooLarge, TooMany, UploadStalled
from sandbox_agent.files import FileService
from support.limits import file_limits
from support.tars import pieces, snapshot


class ConnectionLostError(Exception):
    """Stands for whatever the body of a broken upload raises."""


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def _broken(*, size: int = 3_000_000) -> AsyncIterator[bytes]:
    yield b"x" * size
    raise ConnectionLostError


async def test_a_stream_is_written_and_its_parents_made(confined: FileService, root: Path) -> None:
    result = await confined.write_stream("a/b/f", pieces([b"one", b"", b"two" * 500_000, b"three"]))
    assert msgspec.to_builtins(result) == {"path": str(root / "a/b/f"), "bytesWritten": 1_500_008}
    assert (root / "a/b/f").read_bytes() == b"one" + b"two" * 500_000 + b"three"
    assert _names(root) == ["a"]
    assert _names(root / "a/b") == ["f"]


async def test_an_empty_body_makes_an_empty_file(confined: FileService, root: Path) -> None:
    assert (await confined.write_stream("f", pieces([]))).bytes_written == 0
    assert (root / "f").read_bytes() == b""


async def test_thousands_of_tiny_pieces_arrive_in_order(confined: FileService, root: Path) -> None:
    body = [number.to_bytes(2, "big") for number in range(5000)]
    await confined.write_stream("f", pieces(body))
    assert (root / "f").read_bytes() == b"".join(body)


async def test_a_new_file_gets_the_usual_mode_and_an_old_one_keeps_its_own(confined: FileService, root: Path) -> None:
    (root / "reference").touch()
    (root / "script").write_bytes(b"old")
    (root / "script").chmod(0o4751)
    await confined.write_bytes("new", b"x")
    await confined.write_bytes("script", b"new")
    assert stat.S_IMODE((root / "new").stat().st_mode) == stat.S_IMODE((root / "reference").stat().st_mode)
    assert stat.S_IMODE((root / "script").stat().st_mode) == 0o751
    assert (root / "script").read_bytes() == b"new"


@pytest.mark.promise("P-files-3")
async def test_a_broken_upload_changes_nothing(confined: FileService, root: Path) -> None:
    (root / "f").write_bytes(b"old")
    before = snapshot(root)
    for path in ("f", "new", "new/parents/f"):
        with pytest.raises(ConnectionLostError):
            await confined.write_stream(path, _broken())
        assert snapshot(root) == before


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_a_cancelled_upload_changes_nothing(confined: FileService, root: Path, size: int) -> None:
    (root / "f").write_bytes(b"old")
    before = snapshot(root)
    waiting = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * size
        waiting.set()
        await asyncio.Event().wait()

    upload = asyncio.create_task(confined.write_stream("f", body()))
    await waiting.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert snapshot(root) == before


async def test_an_upload_cancelled_at_any_step_leaves_no_temporary_file(confined: FileService, root: Path) -> None:
    for turns in range(12):
        upload = asyncio.create_task(confined.write_stream("f", pieces([b"x" * 2_000_000] * 3)))
        for _ in range(turns):
            await asyncio.sleep(0)
        upload.cancel()
        await asyncio.wait([upload])
    await confined.close()
    assert set(_names(root)) <= {"f"}


async def test_an_upload_that_stalls_is_given_up(root: Path) -> None:
    service = FileService([root], root, file_limits(stall_seconds=0.05), data_dir=None)

    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    with pytest.raises(UploadStalled):
        await service.write_stream("f", body())
    assert _names(root) == []
    await service.close()


async def test_slow_uploads_are_bounded_and_leave_other_operations_free(root: Path) -> None:
    service = FileService([root], root, file_limits(max_streams=3, workers=1), data_dir=None)
    gate = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        await gate.wait()

    uploads = [asyncio.create_task(service.write_stream(str(number), body())) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(TooMany):
        await service.write_stream("more", body())
    assert (await service.stat(".")).entry_type == "directory"
    gate.set()
    await asyncio.gather(*uploads)
    assert _names(root) == ["0", "1", "2"]
    await service.close()


async def test_writing_onto_or_below_the_wrong_thing_is_a_conflict(confined: FileService, root: Path) -> None:
    (root / "dir").mkdir()
    (root / "file").write_bytes(b"old")
    for path in ("dir", "file/below", "."):
        with pytest.raises(Conflict):
            await confined.write_bytes(path, b"x")
    assert snapshot(root) == {"dir": "directory", "file": b"old"}


async def test_a_file_beyond_the_limit_changes_nothing(root: Path) -> None:
    service = FileService([root], root, file_limits(max_file_bytes=1000, max_inline_bytes=100), data_dir=None)
    with pytest.raises(TooLarge):
        await service.write_stream("f", pieces([b"x" * 600, b"x" * 600]))
    with pytest.raises(TooLarge):
        await service.write_bytes("f", b"x" * 101)
    assert _names(root) == []
    await service.close()


async def test_two_uploads_to_one_path_leave_one_of_them_whole(confined: FileService, root: Path) -> None:
    one, two = b"1" * 3_000_000, b"2" * 3_000_000
    await asyncio.gather(confined.write_stream("f", pieces([one])), confined.write_stream("f", pieces([two])))
    assert (root / "f").read_bytes() in (one, two)
    assert _names(root) == ["f"]
