from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path

import pytest

from sandbox_agent.errors import ClientError, Forbidden, InvalidParams, NotFound
from sandbox_agent.files import FileService
from sandbox_agent.files.paths import Roots
from sandbox_agent.files.reading import open_regular
from sandbox_agent.files.walk import Missing, locate
from support.tars import archive, file, stream, symlink


@pytest.fixture
def roots(root: Path) -> Roots:
    return Roots([(root, root)])


def test_a_spot_stays_in_its_directory_when_that_is_swapped_for_a_link(roots: Roots, root: Path, outside: Path) -> None:
    (root / "dir").mkdir()
    (root / "dir/secret").write_bytes(b"harmless")
    with locate(roots, f"{root}/dir/secret") as spot:
        (root / "dir").rename(root / "away")
        (root / "dir").symlink_to(outside)
        fd, _ = open_regular(spot, "dir/secret")
    try:
        assert os.read(fd, 100) == b"harmless"
    finally:
        os.close(fd)


def test_a_spot_whose_file_is_swapped_for_a_link_is_refused(roots: Roots, root: Path, outside: Path) -> None:
    (root / "file").touch()
    with locate(roots, f"{root}/file") as spot:
        (root / "file").unlink()
        (root / "file").symlink_to(outside / "secret")
        with pytest.raises(Forbidden, match="not a regular file"):
            open_regular(spot, "file")


def test_missing_parents_are_refused_reported_or_created(roots: Roots, root: Path) -> None:
    asked = f"{root}/a/b/c"
    with pytest.raises(NotFound):
        locate(roots, asked)
    with locate(roots, asked, missing=Missing.REPORT) as spot:
        assert (spot.name, spot.missing) == ("a", ("b", "c"))
    assert list(root.iterdir()) == []
    with locate(roots, asked, missing=Missing.CREATE) as spot:
        assert (spot.name, spot.missing) == ("c", ())
    assert (root / "a/b").is_dir()


def test_a_way_back_through_a_missing_directory_is_not_found(roots: Roots, root: Path) -> None:
    with pytest.raises(NotFound):
        locate(roots, f"{root}/missing/../x", missing=Missing.REPORT)


def test_parents_are_created_behind_links_within_the_root_only(roots: Roots, root: Path, outside: Path) -> None:
    (root / "in").symlink_to("later")
    (root / "out").symlink_to(outside / "later")
    locate(roots, f"{root}/in/a/x", missing=Missing.CREATE).close()
    assert (root / "later/a").is_dir()
    with pytest.raises(Forbidden):
        locate(roots, f"{root}/out/a/x", missing=Missing.CREATE)
    assert not (outside / "later").exists()


def test_forty_links_are_followed_and_forty_one_are_not(roots: Roots, root: Path) -> None:
    (root / "0").touch()
    for number in range(1, 42):
        (root / str(number)).symlink_to(str(number - 1))
    locate(roots, f"{root}/40").close()
    with pytest.raises(InvalidParams, match="too many symbolic links"):
        locate(roots, f"{root}/41")


def test_a_path_that_takes_too_many_steps_is_refused(roots: Roots, root: Path) -> None:
    deep = "/".join(["d"] * 300)
    locate(roots, f"{root}/{deep}/x", missing=Missing.CREATE).close()
    with pytest.raises(Forbidden, match="steps"):
        locate(roots, f"{root}/{deep}" + "/../d" * 200)


async def test_no_operation_leaves_a_descriptor_open(confined: FileService, root: Path, outside: Path) -> None:
    (root / "dir").mkdir()
    (root / "out").symlink_to(outside)
    os.mkfifo(root / "pipe")

    async def everything() -> None:
        good = archive(file("a/b/c"), symlink("l", "a"))
        calls: list[Awaitable[object]] = []
        for path in ("dir", "out", "pipe", "missing/x", "dir/../dir/f", "f/x", "..", "."):
            calls += [
                confined.stat(path),
                confined.list_entries(path),
                confined.read_bytes(path),
                confined.write_bytes(path, b"x"),
                confined.mkdir(path),
                confined.move(path, "moved"),
                confined.move("moved", path),
                confined.upload_batch(path, stream(good)),
                confined.upload_batch(path, stream(good[:-1024])),
                confined.delete(path),
            ]
        for call in calls:
            try:
                await call
            except ClientError:
                pass

    await everything()
    before = _open_descriptors()
    for cancelled in (confined.open_for_read("dir/f"), confined.write_bytes("f", b""), confined.stat("f")):
        task = asyncio.ensure_future(cancelled)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await everything()
    await confined.close()
    assert _open_descriptors() <= before


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())
