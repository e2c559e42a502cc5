from __future__ import annotations

import asyncio
import gzip
import io
import os
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox_agent.archives.tar import Member, TarReader
from sandbox_agent.errors import Conflict
from sandbox_agent.files import FileService
from support.limits import file_limits
from support.tars import archive, directory, file, hardlink, header, long_name, pax, snapshot, stream, symlink

CONTENTS = {f"dir{number % 20}/file{number}.txt": f"content {number}\n".encode() * 20 for number in range(2000)}
FORMATS = [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]


def _tar(contents: dict[str, bytes], shape: int = tarfile.PAX_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=shape) as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mtime = 1_700_000_000
            tar.addfile(member, io.BytesIO(content))
    return target.getvalue()


def _files(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("path", ["new", "new/deeper", "existing", "."])
@pytest.mark.parametrize("compress", [False, True])
async def test_2000_files_arrive_as_they_were_sent(
    confined: FileService, root: Path, path: str, *, compress: bool
) -> None:
    (root / "existing").mkdir()
    data = _tar(CONTENTS)
    result = await confined.upload_batch(path, stream(gzip.compress(data, 1) if compress else data))
    assert _files(root / path) == CONTENTS
    assert result.truncated
    assert len(result.paths) == 1024
    assert result.paths[0] == os.path.normpath(root / path / "dir0/file0.txt")
    assert (root / path / "dir0/file0.txt").stat().st_mtime == 1_700_000_000
    assert not list(root.rglob(".sandbox-agent-*"))


async def test_up_to_1024_paths_are_reported_in_full(confined: FileService, root: Path) -> None:
    names = [f"f{number}" for number in range(1024)]
    result = await confined.upload_batch("new", stream(archive(*(header(name) for name in names))))
    assert not result.truncated
    assert result.paths == [str(root / "new" / name) for name in names]


async def test_the_compression_may_be_told(confined: FileService, root: Path) -> None:
    data = _tar({"a": b"a"})
    await confined.upload_batch("plain", stream(data), is_gzip=False)
    await confined.upload_batch("packed", stream(gzip.compress(data)), is_gzip=True)
    await confined.upload_batch("members", stream(gzip.compress(data[:700]) + gzip.compress(data[700:])))
    assert _files(root) == {"plain/a": b"a", "packed/a": b"a", "members/a": b"a"}


async def test_an_archive_is_merged_into_what_is_there(confined: FileService, root: Path) -> None:
    (root / "t/shared").mkdir(parents=True)
    (root / "t/shared/old").write_bytes(b"old")
    (root / "t/shared/both").write_bytes(b"old")
    (root / "t/link").symlink_to("shared/old")
    data = archive(
        file("shared/both", b"new"), file("shared/new", b"new"), file("fresh/x", b"x"), file("link", b"plain")
    )
    await confined.upload_batch("t", stream(data))
    assert snapshot(root / "t") == {
        "fresh": "directory",
        "fresh/x": b"x",
        "link": b"plain",
        "shared": "directory",
        "shared/both": b"new",
        "shared/new": b"new",
        "shared/old": b"old",
    }


@pytest.mark.parametrize("data", [archive(file("a"), file("d", b"x")), archive(file("a"), file("f/below"))])
async def test_a_file_and_a_directory_of_one_name_are_a_conflict_that_changes_nothing(
    confined: FileService, root: Path, data: bytes
) -> None:
    (root / "d").mkdir()
    (root / "f").write_bytes(b"f")
    before = snapshot(root)
    with pytest.raises(Conflict):
        await confined.upload_batch(".", stream(data))
    assert snapshot(root) == before


async def test_links_that_stay_inside_are_kept(confined: FileService, root: Path) -> None:
    data = archive(
        symlink("bin/tool", "../lib/tool.js"),
        file("lib/tool.js", b"tool"),
        symlink("dangling", "later/made"),
        hardlink("lib/same.js", "lib/tool.js"),
    )
    await confined.upload_batch("new", stream(data))
    assert (root / "new/bin/tool").read_bytes() == b"tool"
    assert (root / "new/dangling").is_symlink()
    assert (root / "new/lib/same.js").samefile(root / "new/lib/tool.js")


async def test_names_and_modes_in_all_dialects(confined: FileService, root: Path) -> None:
    deep = "/".join(["directory-with-a-long-name"] * 8) + "/file"
    data = archive(
        directory("./"),
        directory("d/", mode=0o500),
        directory("d/"),
        file("d/run", b"x", mode=0o755),
        header("old-style/", kind=b"\0"),
        long_name(deep),
        file("cut", b"gnu"),
        pax({"path": "päx/näme", "mtime": "1700000000.5"}),
        file("cut", b"pax"),
        pax({"comment": "for all"}, kind=b"g"),
        header("base", prefix=b"prefix"),
        header("big", b"\x80" + (3).to_bytes(11, "big")) + b"256".ljust(512, b"\0"),
    )
    result = await confined.upload_batch("new", stream(data, piece=333))
    top = root / "new"
    assert _files(top) == {
        "d/run": b"x",
        deep: b"gnu",
        "päx/näme": b"pax",
        "prefix/base": b"",
        "big": b"256",
    }
    assert (top / "old-style").is_dir()
    assert (top / "d/run").stat().st_mode & 0o111
    assert (top / "päx/näme").stat().st_mtime == 1_700_000_000.5
    assert result.paths[:2] == [str(top / "d"), str(top / "d/run")]


@pytest.mark.parametrize("shape", ["ustar", "pax", "gnu", "v7"])
async def test_what_gnu_tar_writes_is_read(confined: FileService, root: Path, tmp_path: Path, shape: str) -> None:
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/file").write_bytes(b"x" * 5000)
    (source / "a/empty").touch()
    (source / "link").symlink_to("a/b/file")
    (source / "a/twin").hardlink_to(source / "a/b/file")
    packed = subprocess.run(
        ["tar", f"--format={shape}", "-C", source, "-cz", "."], capture_output=True, check=True, timeout=30
    )
    await confined.upload_batch("new", stream(packed.stdout))
    assert snapshot(root / "new") == snapshot(source)


async def test_a_broken_or_cancelled_upload_changes_nothing(confined: FileService, root: Path) -> None:
    data = _tar(CONTENTS)
    waiting = asyncio.Event()

    async def broken() -> AsyncIterator[bytes]:
        yield data[:-20_000]
        raise ConnectionResetError

    async def waits() -> AsyncIterator[bytes]:
        yield data[:-20_000]
        waiting.set()
        await asyncio.Event().wait()

    with pytest.raises(ConnectionResetError):
        await confined.upload_batch("new", broken())
    assert list(root.iterdir()) == []
    upload = asyncio.create_task(confined.upload_batch(".", waits()))
    await waiting.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert list(root.iterdir()) == []


class Collector:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._name = ""

    def begin(self, member: Member) -> None:
        self._name = "/".join(member.parts)
        self.files[self._name] = b""

    def write(self, content: memoryview) -> None:
        self.files[self._name] += bytes(content)

    def end(self) -> None:
        self._name = ""


_part = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda part: part not in (".", "..")
)
_names = st.lists(_part, min_size=1, max_size=5).map("/".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    contents=st.dictionaries(_names, st.binary(max_size=1500), max_size=5),
    piece=st.integers(1, 2000),
    shape=st.sampled_from(FORMATS[1:]),
)
def test_the_reader_agrees_with_the_standard_library_however_the_bytes_are_cut(
    contents: dict[str, bytes], piece: int, shape: int
) -> None:
    data = _tar(contents, shape)
    collector = Collector()
    reader = TarReader(collector, file_limits())
    for start in range(0, len(data), piece):
        reader.feed(data[start : start + piece])
    reader.finish()
    assert collector.files == contents
