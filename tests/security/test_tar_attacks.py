"""The attacks by archive of the security paper, each over HTTP at least once."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.served import client, problem
from support.server import Server
from support.tars import END, archive, directory, file, hardlink, header, long_name, pax, snapshot, symlink

GOOD = file("good/first", b"first")
BAD: dict[str, bytes] = {
    "absolute name": archive(GOOD, file("/etc/owned")),
    "dot-dot name": archive(GOOD, file("../owned")),
    "dot-dot inside a name": archive(GOOD, file("good/../../owned")),
    "symlink then write-through": archive(GOOD, symlink("link", "/tmp"), file("link/owned")),
    "symlink inside then write-through": archive(GOOD, symlink("link", "good"), file("link/owned")),
    "symlink out": archive(GOOD, symlink("link", "..")),
    "symlink out through another": archive(
        directory("deep"), symlink("deep/up", ".."), symlink("link", "deep/up/../outside")
    ),
    "hardlink outside": archive(GOOD, hardlink("link", "/etc/passwd")),
    "hardlink by dot-dot": archive(GOOD, hardlink("link", "../outside")),
    "over-long link name": archive(GOOD, long_name("x" * 5000, kind=b"K"), symlink("link", "x")),
    "character device": archive(GOOD, header("null", kind=b"3")),
    "block device": archive(GOOD, header("disk", kind=b"4")),
    "FIFO": archive(GOOD, header("pipe", kind=b"6")),
    "sparse file": archive(GOOD, header("sparse", kind=b"S")),
    "duplicates that change kind": archive(GOOD, directory("good/first/")),
    "PAX override of the name": archive(GOOD, pax({"path": "../owned"}), file("innocent")),
    "PAX override of the size": archive(GOOD, pax({"size": "999999999999"}), file("innocent")),
    "global PAX override": archive(pax({"path": "../owned"}, kind=b"g"), file("innocent")),
    "truncated in a file": archive(GOOD, file("more", b"x" * 5000))[:-4000],
    "truncated in a header": (GOOD + file("more"))[:-700],
    "no end": GOOD,
    "damaged checksum": archive(GOOD, b"X" + file("more")[1:]),
    "gzip bomb": gzip.compress(archive(file("zeros", bytes(64 << 20))), 9),
    "truncated gzip": gzip.compress(archive(GOOD, file("more", bytes(range(256)) * 100)))[:-50],
    "not an archive": b"hello" * 300,
    "empty": b"",
}


@pytest.fixture
def target(root: Path) -> Iterator[Path]:
    made = root / "target"
    (made / "good").mkdir(parents=True)
    (made / "kept").write_text("as it was")
    yield made
    for path in sorted(made.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    made.rmdir()


@pytest.mark.parametrize("name", BAD)
@pytest.mark.promise("P-files-4")
def test_a_bad_archive_is_refused_and_changes_nothing(open_server: Server, root: Path, target: Path, name: str) -> None:
    before = snapshot(root)
    with client(open_server) as http:
        answer = http.post(
            "/v1/fs/upload-batch",
            params={"path": str(target)},
            content=BAD[name],
            headers={"Content-Type": "application/x-tar"},
        )
    assert 400 <= answer.status_code < 500, answer.text
    assert problem(answer) in {"bad_archive", "too_large", "conflict", "forbidden", "invalid_params"}
    assert snapshot(root) == before


def test_a_million_entries_are_refused(open_server: Server, root: Path, target: Path) -> None:
    before = snapshot(root)
    entries = b"".join(header(f"f{number:07}") for number in range(110_000))
    with client(open_server) as http:
        answer = http.post(
            "/v1/fs/upload-batch",
            params={"path": str(target)},
            content=gzip.compress(entries + END, 1),
            headers={"Content-Type": "application/gzip"},
        )
    assert answer.status_code in {400, 413}, answer.text
    assert snapshot(root) == before


def test_setuid_and_setgid_bits_are_dropped(open_server: Server, target: Path) -> None:
    with client(open_server) as http:
        answer = http.post(
            "/v1/fs/upload-batch",
            params={"path": str(target)},
            content=archive(file("tool", mode=0o6755)),
            headers={"Content-Type": "application/x-tar"},
        )
    assert answer.status_code == 200
    assert (target / "tool").stat().st_mode & 0o7000 == 0


@pytest.mark.parametrize("where", ["/etc/owned", "../../owned", "/"])
def test_an_archive_is_not_unpacked_outside_the_roots(open_server: Server, where: str) -> None:
    with client(open_server) as http:
        answer = http.post(
            "/v1/fs/upload-batch",
            params={"path": where},
            content=archive(GOOD),
            headers={"Content-Type": "application/x-tar"},
        )
    assert answer.status_code == 403
