from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import msgspec
import pytest

from sandbox_agent.errors import (
    Conflict,
    Forbidden,
    InsufficientStorage,
    InvalidParams,
    NotFound,
    ShuttingDown,
    TooLarge,
)
from sandbox_agent.files import FileService, FsMoveResult
from sandbox_agent.files.failures import explain
from support.limits import file_limits


@pytest.fixture
def other_device(root: Path) -> Iterator[Path]:
    """A directory on another device than the root."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == root.stat().st_dev:
        assert os.environ.get("REQUIRE_ALL") != "1", "/dev/shm is needed"
        pytest.skip("no second device here")
    path = Path(mkdtemp(dir=shared))
    yield path
    shutil.rmtree(path)


async def test_stat_tells_type_size_and_time(confined: FileService, root: Path) -> None:
    (root / "a.txt").write_bytes(b"12345")
    os.utime(root / "a.txt", (0, 1_700_000_000.25))
    assert msgspec.to_builtins(await confined.stat("a.txt")) == {
        "path": str(root / "a.txt"),
        "entryType": "file",
        "size": 5,
        "modified": "2023-11-14T22:13:20.250Z",
    }
    assert (await confined.stat(str(root))).entry_type == "directory"


async def test_stat_of_nothing_is_not_found_and_names_the_path(confined: FileService) -> None:
    with pytest.raises(NotFound, match="missing"):
        await confined.stat("missing/deeper")


async def test_entries_are_listed_by_name_with_links_shown_as_what_they_lead_to(
    confined: FileService, root: Path, outside: Path
) -> None:
    (root / "dir").mkdir()
    (root / "file").write_bytes(b"123")
    (root / "to-dir").symlink_to("dir")
    (root / "to-nothing").symlink_to("nowhere")
    (root / "to-outside").symlink_to(outside)
    listed = await confined.list_entries(".")
    assert [(entry.name, entry.entry_type) for entry in listed] == [
        ("dir", "directory"),
        ("file", "file"),
        ("to-dir", "directory"),
        ("to-nothing", "file"),
        ("to-outside", "file"),
    ]
    assert msgspec.to_builtins(listed[1]) | {"modified": ""} == {
        "name": "file",
        "path": str(root / "file"),
        "entryType": "file",
        "size": 3,
        "modified": "",
    }


async def test_a_name_that_is_not_utf8_is_listed_so_that_json_can_carry_it(confined: FileService, root: Path) -> None:
    (Path(os.fsdecode(bytes(root) + b"/bad\xff"))).touch()
    (entry,) = await confined.list_entries(".")
    assert entry.name == "bad\ufffd"
    assert msgspec.json.encode(entry)


async def test_listing_a_file_is_a_conflict(confined: FileService, root: Path) -> None:
    (root / "file").touch()
    with pytest.raises(Conflict, match="not a directory"):
        await confined.list_entries("file")


async def test_listing_stops_at_its_limit(root: Path) -> None:
    for number in range(4):
        (root / str(number)).touch()
    service = FileService([root], root, file_limits(max_listed=3), data_dir=None)
    with pytest.raises(TooLarge, match="more than 3"):
        await service.list_entries(".")
    await service.close()


async def test_mkdir_makes_parents_and_may_be_repeated(confined: FileService, root: Path) -> None:
    for _ in range(2):
        result = await confined.mkdir("a/b/c")
        assert result.path == str(root / "a/b/c")
    assert (root / "a/b/c").is_dir()
    await confined.mkdir(str(root))


async def test_mkdir_over_a_file_is_a_conflict(confined: FileService, root: Path) -> None:
    (root / "file").touch()
    with pytest.raises(Conflict):
        await confined.mkdir("file")
    with pytest.raises(Conflict):
        await confined.mkdir("file/below")


async def test_relative_paths_start_at_the_given_base(confined: FileService, root: Path) -> None:
    (root / "session").mkdir()
    (root / "session" / "x").write_bytes(b"x")
    assert (await confined.stat("x", base=root / "session")).path == str(root / "session/x")


async def test_a_base_that_reaches_the_root_through_a_link_above_it_works(
    confined: FileService, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "alias").symlink_to(root)
    (root / "x").touch()
    assert (await confined.stat("x", base=tmp_path / "alias")).size == 0


async def test_a_root_configured_through_a_link_is_reached_by_both_names(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    (root / "x").touch()
    service = FileService([tmp_path / "alias"], tmp_path, file_limits(), data_dir=None)
    assert (await service.stat(str(tmp_path / "alias/x"))).path == str(tmp_path / "alias/x")
    assert (await service.stat(str(root / "x"))).path == str(root / "x")
    await service.close()


async def test_move_renames_and_makes_the_parents(confined: FileService, root: Path) -> None:
    (root / "a").write_bytes(b"a")
    result = await confined.move("a", "new/dir/b")
    assert result == FsMoveResult(from_=str(root / "a"), to=str(root / "new/dir/b"))
    assert msgspec.to_builtins(result) == {"from": str(root / "a"), "to": str(root / "new/dir/b")}
    assert (root / "new/dir/b").read_bytes() == b"a"
    assert not (root / "a").exists()


async def test_move_onto_a_file_needs_overwrite(confined: FileService, root: Path) -> None:
    (root / "a").write_bytes(b"a")
    (root / "b").write_bytes(b"b")
    with pytest.raises(Conflict, match="exists already"):
        await confined.move("a", "b")
    assert (root / "b").read_bytes() == b"b"
    await confined.move("a", "b", overwrite=True)
    assert (root / "b").read_bytes() == b"a"


async def test_move_of_nothing_is_not_found_and_makes_no_parents(confined: FileService, root: Path) -> None:
    with pytest.raises(NotFound):
        await confined.move("missing", "new/x")
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("overwrite", [False, True])
async def test_move_onto_a_directory_with_files_is_a_conflict(
    confined: FileService, root: Path, *, overwrite: bool
) -> None:
    (root / "file").touch()
    (root / "dir").mkdir()
    (root / "full").mkdir()
    (root / "full" / "kept").touch()
    for source in ("file", "dir"):
        with pytest.raises(Conflict):
            await confined.move(source, "full", overwrite=overwrite)
    with pytest.raises(Conflict):
        await confined.move("dir", "file", overwrite=overwrite)
    assert (root / "full" / "kept").exists()


async def test_move_into_itself_is_refused(confined: FileService, root: Path) -> None:
    (root / "dir").mkdir()
    with pytest.raises(InvalidParams, match="into itself"):
        await confined.move("dir", "dir/below/deeper")
    assert list((root / "dir").iterdir()) == []


async def test_move_to_where_it_is_changes_nothing(confined: FileService, root: Path) -> None:
    (root / "a").write_bytes(b"a")
    await confined.move("a", "./a")
    assert (root / "a").read_bytes() == b"a"


async def test_move_between_devices_takes_the_whole_tree(root: Path, other_device: Path) -> None:
    (root / "tree/inner").mkdir(parents=True)
    (root / "tree/inner/file").write_bytes(b"x" * 100_000)
    (root / "tree/inner/file").chmod(0o755)
    (root / "tree/link").symlink_to("inner/file")
    service = FileService([root, other_device], root, file_limits(), data_dir=None)
    await service.move("tree", str(other_device / "moved"))
    assert (other_device / "moved/inner/file").read_bytes() == b"x" * 100_000
    assert (other_device / "moved/inner/file").stat().st_mode & 0o777 == 0o755
    assert (other_device / "moved/link").readlink() == Path("inner/file")
    assert not (root / "tree").exists()
    await service.close()


async def test_a_move_between_devices_that_fails_leaves_both_sides(root: Path, other_device: Path) -> None:
    (root / "tree").mkdir()
    (root / "tree/file").write_bytes(b"x")
    os.mkfifo(root / "tree/pipe")
    service = FileService([root, other_device], root, file_limits(), data_dir=None)
    with pytest.raises(Forbidden, match="pipe"):
        await service.move("tree", str(other_device / "moved"))
    assert list(other_device.iterdir()) == []
    assert (root / "tree/file").exists()
    await service.close()


async def test_delete_removes_a_file_and_an_empty_directory(confined: FileService, root: Path) -> None:
    (root / "file").touch()
    (root / "dir").mkdir()
    assert (await confined.delete("file")).path == str(root / "file")
    await confined.delete("dir")
    assert list(root.iterdir()) == []
    with pytest.raises(NotFound):
        await confined.delete("file")


async def test_delete_of_a_full_directory_needs_recursive(confined: FileService, root: Path) -> None:
    (root / "dir/inner").mkdir(parents=True)
    (root / "dir/inner/file").touch()
    with pytest.raises(Conflict, match="not empty"):
        await confined.delete("dir")
    await confined.delete("dir", recursive=True)
    assert list(root.iterdir()) == []


async def test_recursive_delete_of_a_tree_thousands_of_levels_deep(confined: FileService, root: Path) -> None:
    fd = os.open(root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    await confined.delete("d", recursive=True)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [
        (errno.ENOENT, NotFound, 404),
        (errno.EEXIST, Conflict, 409),
        (errno.ENOTEMPTY, Conflict, 409),
        (errno.EACCES, Forbidden, 403),
        (errno.ENAMETOOLONG, InvalidParams, 400),
        (errno.EFBIG, TooLarge, 413),
        (errno.ENOSPC, InsufficientStorage, 507),
        (errno.EDQUOT, InsufficientStorage, 507),
    ],
)
def test_each_failure_of_the_system_has_its_error(code: int, kind: type[Exception], status: int) -> None:
    error = explain(OSError(code, os.strerror(code)), "/some/path")
    assert type(error) is kind
    assert error.status == status
    assert "/some/path" in error.detail


async def test_after_close_operations_are_refused(root: Path) -> None:
    service = FileService([root], root, file_limits(), data_dir=None)
    await service.close()
    with pytest.raises(ShuttingDown):
        await service.stat(".")


async def test_operations_beyond_the_limit_are_refused_and_the_others_complete(root: Path) -> None:
    service = FileService([root], root, file_limits(max_operations=2, workers=1), data_dir=None)
    results = await asyncio.gather(*(service.stat(".") for _ in range(5)), return_exceptions=True)
    kinds = [type(result).__name__ for result in results]
    assert kinds == ["FsStat", "FsStat", "TooMany", "TooMany", "TooMany"]
    assert (await service.stat(".")).entry_type == "directory"
    await service.close()
