"""A gibibyte goes in and out again, and the server's memory does not notice."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.served import client, served

GIB = 1 << 30
PIECE = 1 << 20


def peak_memory(pid: int) -> int:
    """The most that the process ever held, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.mark.timeout(180)
@pytest.mark.promise("P-files-5")
def test_a_gibibyte_is_written_and_read_back_with_little_memory(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 3 * GIB:
        pytest.fail("this test needs 3 GiB of disk")
    pattern = random.Random(4).randbytes(PIECE)
    sent, received = hashlib.sha256(), hashlib.sha256()

    def body() -> Iterator[bytes]:
        for number in range(GIB // PIECE):
            piece = number.to_bytes(8, "big") + pattern[8:]
            sent.update(piece)
            yield piece

    there = {"path": str(tmp_path / "root" / "big")}
    (tmp_path / "root").mkdir()
    with served(tmp_path / "home", "--fs-root", str(tmp_path / "root")) as server, client(server) as http:
        written = http.put("/v1/fs/file", params=there, content=body())
        assert written.json()["bytesWritten"] == GIB
        with http.stream("GET", "/v1/fs/file", params=there) as answer:
            assert answer.headers["content-length"] == str(GIB)
            for piece in answer.iter_bytes(PIECE):
                received.update(piece)
        last = http.get("/v1/fs/file", params=there, headers={"Range": "bytes=-8"})
        memory = peak_memory(server.pid)
    (tmp_path / "root" / "big").unlink()
    assert received.digest() == sent.digest()
    assert last.content == pattern[-8:]
    assert memory < 80 << 20, f"{memory >> 20} MiB"
