"""The attacks by archive of the security paper, each by its name. Every one leaves the target as it was."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sandbox_agent.errors import BadArchive, ClientError, Conflict, Forbidden, TooLarge
from sandbox_agent.files import FileLimits, FileService, merge
from support.limits import file_limits
from support.tars import (
    END,
    archive,
    directory,
    file,
    hardlink,
    header,
    long_name,
    pax,
    snapshot,
    stream,
    symlink,
)

GOOD = file("good/first", b"first")

BAD: dict[str, tuple[bytes, str]] = {
    "absolute name": (archive(GOOD, file("/etc/owned")), "absolute"),
    "dot-dot name": (archive(GOOD, file("../owned")), "leads out"),
    "dot-dot inside a name": (archive(GOOD, file("good/../../owned")), "leads out"),
    "dot-dot that stays inside": (archive(GOOD, file("good/../owned")), "leads out"),
    "dot-dot directory": (archive(GOOD, directory("../owned/")), "leads out"),
    "dot-dot in the ustar prefix": (archive(GOOD, header("owned", prefix=b"..")), "leads out"),
    "dot-dot by PAX": (archive(GOOD, pax({"path": "../owned"}), file("innocent")), "leads out"),
    "absolute by PAX": (archive(GOOD, pax({"path": "/tmp/owned"}), file("innocent")), "absolute"),
    "dot-dot by GNU long name": (archive(GOOD, long_name("../owned"), file("innocent")), "leads out"),
    "empty name": (archive(GOOD, file("")), "empty"),
    "empty PAX name": (archive(GOOD, pax({"path": ""}), file("innocent")), "empty"),
    "name of dots only": (archive(GOOD, file("./.")), "does not name"),
    "NUL in a PAX name": (archive(GOOD, pax({"path": b"a\0b"}), file("innocent")), "NUL"),
    "name that is not UTF-8": (archive(GOOD, file(b"\xc0\xae\xc0\xae/owned")), "UTF-8"),
    "over-long name": (archive(GOOD, pax({"path": "x" * 256}), file("innocent")), "too long"),
    "over-long path": (archive(GOOD, pax({"path": "x/" * 30 + "/" * 5000}), file("innocent")), "too long"),
    "deep name": (archive(GOOD, pax({"path": "x/" * 65 + "x"}), file("innocent")), "deeper than 64"),
    "symlink then write-through": (
        archive(GOOD, symlink("link", "good"), file("link/owned")),
        "writes through",
    ),
    "file then write-through": (archive(GOOD, file("good/first/owned")), "writes through"),
    "absolute symlink": (archive(GOOD, symlink("link", "/etc")), "leads out"),
    "symlink out": (archive(GOOD, symlink("link", "..")), "leads out"),
    "symlink out from a directory": (archive(GOOD, symlink("good/link", "../../outside")), "leads out"),
    "symlink out through another": (
        archive(directory("deep"), symlink("deep/up", ".."), symlink("link", "deep/up/../outside")),
        "leads out",
    ),
    "symlink without a target": (archive(GOOD, symlink("link", "")), "no link can have"),
    "over-long link target": (
        archive(GOOD, long_name("a/" * 3000, kind=b"K"), symlink("link", "x")),
        "no link can have",
    ),
    "NUL in a PAX link": (
        archive(GOOD, pax({"linkpath": b"a\0b"}), symlink("link", "x")),
        "no link can have",
    ),
    "PAX override of a link target": (
        archive(GOOD, pax({"linkpath": "../outside"}), symlink("link", "good")),
        "leads out",
    ),
    "hardlink to an absolute path": (archive(GOOD, hardlink("link", "/etc/passwd")), "absolute"),
    "hardlink out": (archive(GOOD, hardlink("link", "../outside/secret")), "leads out"),
    "hardlink to a file of the target": (archive(GOOD, hardlink("link", "kept")), "no earlier file"),
    "hardlink to a symlink": (archive(GOOD, symlink("s", "good"), hardlink("link", "s")), "no earlier file"),
    "hardlink to a directory": (archive(GOOD, directory("d"), hardlink("link", "d")), "no earlier file"),
    "hardlink to a later file": (archive(GOOD, hardlink("link", "later"), file("later")), "no earlier file"),
    "character device": (archive(GOOD, header("dev", kind=b"3")), "character device"),
    "block device": (archive(GOOD, header("dev", kind=b"4")), "block device"),
    "FIFO": (archive(GOOD, header("pipe", kind=b"6")), "FIFO"),
    "GNU sparse file": (archive(GOOD, header("sparse", kind=b"S")), "sparse"),
    "PAX sparse file": (archive(GOOD, pax({"GNU.sparse.major": "1"}), file("sparse")), "sparse"),
    "unknown type": (archive(GOOD, header("odd", kind=b"Z")), "unknown type"),
    "duplicate file": (archive(GOOD, file("good/first", b"again")), "twice"),
    "duplicate by another spelling": (archive(GOOD, file("./good//first", b"again")), "twice"),
    "symlink over a directory": (archive(GOOD, symlink("good", "x")), "twice"),
    "file over an implied directory": (archive(GOOD, file("good")), "twice"),
    "PAX size that hides a member": (archive(GOOD, pax({"size": "100000"}), file("x")), "cut off"),
    "PAX size that is no number": (archive(GOOD, pax({"size": "-1"}), file("x")), "size"),
    "PAX time that is no number": (archive(GOOD, pax({"mtime": "nan"}), file("x")), "time"),
    "global PAX path": (archive(GOOD, pax({"path": "owned"}, kind=b"g"), file("x")), "global"),
    "malformed PAX record": (archive(GOOD, file("h", b"999 path=x\n", kind=b"x"), file("x")), "malformed"),
    "PAX record of length zero": (archive(GOOD, file("h", b"0 path=x\n", kind=b"x"), file("x")), "malformed"),
    "PAX header without an entry": (archive(GOOD, pax({"path": "x"})), "announces"),
    "huge PAX header": (archive(GOOD, header("h", 2**30, kind=b"x")), "extension header"),
    "huge GNU long name": (archive(GOOD, header("h", 2**30, kind=b"L")), "extension header"),
    "negative size": (archive(GOOD, header("x", b"\xff" * 12)), "negative"),
    "size that is no number": (archive(GOOD, header("x", b"zzzzzzzzzzz\0")), "number"),
    "directory with content": (archive(GOOD, header("d", 10, kind=b"5")), "content"),
    "wrong checksum": (archive(GOOD, b"X" + file("x")[1:]), "checksum"),
    "truncated in a header": (archive(GOOD, file("x"))[:1300], "cut off"),
    "truncated in a file": (GOOD + file("x", b"x" * 5000)[:2000], "cut off"),
    "truncated between members": (GOOD, "cut off"),
    "data behind the end": (archive(GOOD) + file("hidden"), "behind its end"),
    "nothing at all": (b"", "empty"),
    "one byte": (b"x", "empty"),
    "not a tar": (b"PK\x03\x04" + bytes(2000), "checksum|number"),
    "gzip that is cut off": (gzip.compress(archive(GOOD))[:-4], "cut off"),
    "gzip with a wrong checksum": (gzip.compress(archive(GOOD))[:-8] + bytes(8), "gzip"),
    "gzip with rubbish behind": (gzip.compress(archive(GOOD)) + b"rubbish", "gzip"),
}


@pytest.fixture
def target(root: Path) -> Path:
    path = root / "target"
    path.mkdir()
    (path / "kept").write_bytes(b"kept")
    return path


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("piece", [64 * 1024, 100])
async def test_a_bad_archive_is_refused_and_leaves_nothing_behind(
    confined: FileService, tmp_path: Path, target: Path, outside: Path, name: str, piece: int
) -> None:
    data, words = BAD[name]
    before = snapshot(tmp_path)
    for path in ("target", "target/new", "fresh/deeper"):
        with pytest.raises(BadArchive, match=words):
            await confined.upload_batch(path, stream(data, piece=piece))
        assert snapshot(tmp_path) == before


async def test_setuid_bits_are_dropped(confined: FileService, root: Path) -> None:
    await confined.upload_batch("new", stream(archive(directory("d", mode=0o7777), file("d/x", mode=0o6755))))
    assert (root / "new/d").stat().st_mode & 0o7000 == 0
    assert (root / "new/d/x").stat().st_mode & 0o7000 == 0


@pytest.mark.parametrize("is_gzip", [None, True])
async def test_a_gzip_bomb_is_given_up_early(confined: FileService, root: Path, *, is_gzip: bool | None) -> None:
    engine = zlib.compressobj(9, zlib.DEFLATED, 31)
    first = engine.compress(header("zeros", 7 * 1024**3)) + engine.flush(zlib.Z_FULL_FLUSH)
    mebibyte = engine.compress(bytes(1024**2)) + engine.flush(zlib.Z_FULL_FLUSH)
    sent = 0

    async def bomb() -> AsyncIterator[bytes]:
        nonlocal sent
        yield first
        for sent in range(7 * 1024):  # noqa: B007
            yield mebibyte

    with pytest.raises(TooLarge, match="200 times"):
        await confined.upload_batch("new", bomb(), is_gzip=is_gzip)
    assert list(root.iterdir()) == []
    assert sent < 1024


async def test_a_gzip_bomb_in_one_piece_is_given_up_early(root: Path) -> None:
    bomb = gzip.compress(header("zeros", 64 * 1024**2) + bytes(64 * 1024**2) + END)
    service = FileService([root], root, file_limits(gzip_ratio_after=1024**2), data_dir=None)
    with pytest.raises(TooLarge, match="200 times"):
        await service.upload_batch("new", stream(bomb))
    assert list(root.iterdir()) == []
    await service.close()


async def test_a_bomb_of_gzip_members_that_hold_nothing_is_given_up(root: Path) -> None:
    service = FileService([root], root, file_limits(max_archive_bytes=1024**2), data_dir=None)
    with pytest.raises(TooLarge, match="compressed"):
        await service.upload_batch("new", stream(gzip.compress(b"") * 100_000))
    assert list(root.iterdir()) == []
    await service.close()


def _tiny_files(number: int) -> bytes:
    return header(f"f{number}")


def _deep_names(number: int) -> bytes:
    return header(f"{number}/" + "d/" * 40 + "f")


def _endless_extensions(number: int) -> bytes:
    return pax({"comment": str(number)}, kind=b"g")


@pytest.mark.parametrize("make", [_tiny_files, _deep_names, _endless_extensions])
async def test_a_million_entries_are_refused_soon_after_the_limit(root: Path, make: Callable[[int], bytes]) -> None:
    limit = 2000
    service = FileService([root], root, file_limits(max_archive_entries=limit), data_dir=None)
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for first in range(0, 1_000_000, 100):
            sent = first + 100
            yield b"".join(make(number) for number in range(first, first + 100))

    with pytest.raises(TooLarge, match="more than 2000 entries"):
        await service.upload_batch("new", body())
    assert sent < 3 * limit
    assert list(root.iterdir()) == []
    await service.close()


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (file_limits(max_member_bytes=1000), "1001 bytes"),
        (file_limits(max_archive_bytes=4000), "more than 4000"),
        (file_limits(max_archive_entries=2), "more than 2 entries"),
    ],
    ids=["single file", "total", "entries"],
)
async def test_an_archive_beyond_a_limit_leaves_nothing(root: Path, limits: FileLimits, words: str) -> None:
    service = FileService([root], root, limits, data_dir=None)
    data = archive(file("a", b"x" * 900), file("b", b"x" * 1001), file("c", b"x" * 1000))
    for body in (data, gzip.compress(data)):
        with pytest.raises(TooLarge, match=words):
            await service.upload_batch("new", stream(body))
    assert list(root.iterdir()) == []
    await service.close()


async def test_a_size_larger_than_what_is_left_of_the_disk_is_not_reserved(confined: FileService, root: Path) -> None:
    with pytest.raises(BadArchive, match="cut off"):
        await confined.upload_batch("new", stream(archive(header("x", 2**32))))
    assert list(root.iterdir()) == []


async def test_links_in_the_target_that_lead_out_are_not_written_through(
    confined: FileService, target: Path, outside: Path
) -> None:
    (target / "dir").symlink_to(outside)
    (target / "file").symlink_to(outside / "secret")
    before = snapshot(outside)
    with pytest.raises(Conflict, match="dir"):
        await confined.upload_batch("target", stream(archive(file("a"), file("dir/secret", b"owned"))))
    assert not (target / "a").exists()
    await confined.upload_batch("target", stream(archive(file("file", b"new"))))
    assert not (target / "file").is_symlink()
    assert (target / "file").read_bytes() == b"new"
    assert snapshot(outside) == before


async def test_a_target_that_is_a_link_out_is_forbidden(confined: FileService, root: Path, outside: Path) -> None:
    (root / "out").symlink_to(outside)
    for path in ("out", "out/new", "../outside"):
        with pytest.raises(Forbidden):
            await confined.upload_batch(path, stream(archive(file("owned"))))
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


async def test_a_target_that_is_a_file_is_a_conflict(confined: FileService, target: Path) -> None:
    with pytest.raises(Conflict):
        await confined.upload_batch("target/kept", stream(archive(file("x"))))
    assert snapshot(target) == {"kept": b"kept"}


@pytest.fixture
def staged(target: Path) -> Path:
    """A tree beside the target that replaces, joins and adds."""
    (target / "joined").mkdir()
    (target / "joined/old").write_bytes(b"old")
    path = target.parent / "staged"
    for name in ("kept", "joined/old", *(f"joined/new{number}" for number in range(20)), "added/file"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"from the archive")
    return path


@pytest.mark.promise("P-files-4")
def test_a_merge_that_fails_on_its_way_is_undone(target: Path, staged: Path) -> None:
    before = snapshot(target), snapshot(staged)
    saved = target.parent / "saved"
    saved.mkdir()
    fds = [os.open(path, os.O_RDONLY) for path in (staged, target, saved)]
    saved.rmdir()  # so that nothing can be kept before it is replaced
    with pytest.raises(FileNotFoundError):
        merge.merge(fds[0], fds[1], fds[2])
    for fd in fds:
        os.close(fd)
    assert (snapshot(target), snapshot(staged)) == before


def test_undoing_a_merge_brings_replaced_files_back(target: Path, staged: Path) -> None:
    before = snapshot(target)
    saved = target.parent / "saved"
    saved.mkdir()
    fds = [os.open(path, os.O_RDONLY) for path in (staged, target, saved)]
    steps: list[merge._Step] = []
    merge._move(fds[0], fds[1], fds[2], (), steps)
    assert (target / "kept").read_bytes() == b"from the archive"
    merge._undo(steps, *fds)
    for fd in fds:
        os.close(fd)
    assert snapshot(target) == before


async def test_random_damage_never_changes_the_target_by_halves(confined: FileService, target: Path) -> None:
    data = archive(file("a", b"a" * 700), directory("d"), file("d/b", b"b" * 600), symlink("l", "d/b"))
    before = snapshot(target)
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x5A
        try:
            await confined.upload_batch("target", stream(bytes(damaged)))
        except ClientError:
            assert snapshot(target) == before
        else:
            assert len(snapshot(target)) == len(before) + 4
            for path in ("a", "d", "l"):
                await confined.delete(f"target/{path}", recursive=True)
            assert snapshot(target) == before
