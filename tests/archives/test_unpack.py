from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox_agent.archives.unpack import unpack
from sandbox_agent.errors import InstallError
from support.loopback_site import tar_of, zip_of

More = Callable[[tarfile.TarFile], None]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", text: bytes = b"x") -> More:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, link
        info.size = len(text) if kind == tarfile.REGTYPE else 0
        tar.addfile(info, io.BytesIO(text) if info.size else None)

    return add


def several(*adders: More) -> More:
    def add(tar: tarfile.TarFile) -> None:
        for adder in adders:
            adder(tar)

    return add


def unpack_bytes(tmp_path: Path, content: bytes, name: str, **options: int) -> Path:
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    unpack(archive, name, tmp_path / "out", "bin/tiny", **options)
    return tmp_path / "out"


HOSTILE = {
    "absolute": member("/tmp/evil"),
    "parent": member("../evil"),
    "inner parent": member("a/../../evil"),
    "backslash": member("..\\evil"),
    "link out": member("l", tarfile.SYMTYPE, "../../etc"),
    "absolute link": member("l", tarfile.SYMTYPE, "/etc"),
    "link through a link": several(
        member("d/", tarfile.DIRTYPE), member("d/up", tarfile.SYMTYPE, ".."), member("l", tarfile.SYMTYPE, "d/up/..")
    ),
    "write through a link": several(member("l", tarfile.SYMTYPE, "."), member("l/evil")),
    "write onto a link": several(member("l", tarfile.SYMTYPE, "evil"), member("l")),
    "directory over a link": several(member("l", tarfile.SYMTYPE, "."), member("l", tarfile.DIRTYPE)),
    "hard link out": member("h", tarfile.LNKTYPE, "../../etc/passwd"),
    "hard link to a link": several(member("l", tarfile.SYMTYPE, "x"), member("h", tarfile.LNKTYPE, "l")),
    "hard link to nothing": member("h", tarfile.LNKTYPE, "nowhere"),
    "twice": several(member("a"), member("a")),
    "device": member("dev", tarfile.CHRTYPE),
    "pipe": member("pipe", tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(case: str, tmp_path: Path) -> None:
    before = set(tmp_path.parent.rglob("*"))
    with pytest.raises(InstallError):
        unpack_bytes(tmp_path, tar_of({"bin/tiny": "#!/bin/sh"}, more=HOSTILE[case]), "x.tar.gz")
    outside = set(tmp_path.parent.rglob("*")) - before - {tmp_path / "archive"}
    assert all(path.is_relative_to(tmp_path / "out") for path in outside)
    assert not (tmp_path / "out" / "evil").exists()


def test_an_archive_that_unpacks_to_too_much_is_stopped(tmp_path: Path) -> None:
    bomb = tar_of({"big": "0" * 1_000_000})
    assert len(bomb) < 10_000
    with pytest.raises(InstallError, match="too many bytes"):
        unpack_bytes(tmp_path, bomb, "x.tar.gz", max_bytes=500_000)


@pytest.mark.parametrize("name", ["x.tar.gz", "x.zip", "x.tgz", "x.tar.xz"])
@pytest.mark.parametrize(
    "content", [b"", b"not an archive", tar_of({"a": "b" * 100})[:-40]], ids=["empty", "text", "cut"]
)
def test_a_broken_archive_is_an_install_error(name: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InstallError):
        unpack_bytes(tmp_path, content, name)


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil"])
def test_a_zip_cannot_write_outside(name: str, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=r"leads out|absolute"):
        unpack_bytes(tmp_path, zip_of({name: "x"}), "x.zip")


def test_a_zip_cannot_link_out(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as bundle:
        item = zipfile.ZipInfo("l")
        item.external_attr = (stat.S_IFLNK | 0o777) << 16
        bundle.writestr(item, "/etc/passwd")
    with pytest.raises(InstallError, match="leads out"):
        unpack_bytes(tmp_path, buffer.getvalue(), "x.zip")


def test_an_honest_archive_keeps_files_links_and_executable_bits_but_no_setuid(tmp_path: Path) -> None:
    def more(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo("bin/su")
        info.mode = 0o6755
        tar.addfile(info)
        member("share/data")(tar)
        member("bin/link", tarfile.SYMTYPE, "../share/data")(tar)
        member("bin/hard", tarfile.LNKTYPE, "share/data")(tar)

    out = unpack_bytes(tmp_path, tar_of({"bin/tiny": "hello"}, more=more), "x.tar.gz")
    assert (out / "bin/tiny").read_text() == "hello"
    assert os.access(out / "bin/tiny", os.X_OK)
    assert not os.access(out / "share/data", os.X_OK) or os.geteuid() == 0
    assert stat.S_IMODE((out / "share/data").stat().st_mode) == 0o644
    assert stat.S_IMODE((out / "bin/su").stat().st_mode) == 0o755
    assert (out / "bin/link").read_bytes() == (out / "bin/hard").read_bytes() == b"x"


def test_a_bare_program_is_put_where_its_command_is(tmp_path: Path) -> None:
    out = unpack_bytes(tmp_path, b"#!/bin/sh\n", "tiny-linux-x64")
    assert os.access(out / "bin/tiny", os.X_OK)
