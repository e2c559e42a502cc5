"""Files over the SDK."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.errors import NotFound
from support.server import running_server


async def test_write_read_stat_list_move_delete(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        files = sandbox.files
        await files.mkdir(str(root / "deep"))
        assert await files.write(str(root / "a.txt"), "grün") == 5
        assert await files.read_text(str(root / "a.txt")) == "grün"
        assert (await files.stat(str(root / "a.txt"))).size == 5
        assert {(e.name, e.is_directory) for e in await files.list(str(root))} == {("a.txt", False), ("deep", True)}
        await files.move(str(root / "a.txt"), str(root / "b.txt"))
        await files.delete(str(root / "b.txt"))
        await files.delete(str(root), recursive=True)
        assert not root.exists()
        with pytest.raises(NotFound):
            await files.read(str(root / "b.txt"))


async def test_relative_paths_start_at_the_sessions_directory(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd=work)
        await sandbox.files.within(session.id).write("note.txt", b"here")
    assert (work / "note.txt").read_bytes() == b"here"


async def test_large_files_stream_both_ways(tmp_path: Path) -> None:
    local = tmp_path / "local.bin"
    local.write_bytes(os.urandom(1 << 20) * 24)
    remote = str(tmp_path / "remote.bin")

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * 100_000

    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        assert await sandbox.files.write(remote, local) == 24 << 20
        assert await sandbox.files.download(remote, tmp_path / "back.bin") == 24 << 20
        assert await sandbox.files.write(remote, pieces()) == 800_000
    assert _digest(tmp_path / "back.bin") == _digest(local)
    assert not list(tmp_path.glob("*.part"))


async def test_a_download_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        with pytest.raises(NotFound):
            await sandbox.files.download(str(tmp_path / "nothing"), tmp_path / "target")
    assert not (tmp_path / "target").exists()
    assert not list(tmp_path.glob(".target*"))


async def test_a_directory_goes_up_as_one_tar(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for number in range(300):
        path = project / f"d{number % 7}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n" * 200)
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        written = await sandbox.files.upload(project, str(tmp_path / "copy"))
    assert len([path for path in written if path.endswith(".txt")]) == 300
    assert (tmp_path / "copy" / "d3" / "f3.txt").read_text() == (project / "d3" / "f3.txt").read_text()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
