"""Uploads that a kill -9 of the server cut short: the next start leaves no trace of them, and no half of a merge."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from sandbox_agent.files import FileService
from support.limits import file_limits
from support.server import running_server
from support.waiting import until

CUT_SHORT = """
import asyncio, io, os, signal, sys, tarfile
from pathlib import Path
from sandbox_agent.files import FileService
from sandbox_agent.serve import file_limits
from sandbox_agent.settings import Settings

home, renames = Path(sys.argv[1]), int(sys.argv[2])
real = os.rename

def rename(*args, **options):
    global renames
    renames -= 1
    if renames < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*args, **options)

async def body():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("a", "sub/b", "sub/deep/c", "d"):
            info = tarfile.TarInfo(name)
            info.size = 3
            tar.addfile(info, io.BytesIO(b"new"))
    yield buffer.getvalue()

async def main():
    files = FileService([home / "root"], home / "root", file_limits(Settings()), data_dir=home / "data")
    os.rename = rename
    await files.upload_batch("work", body())

asyncio.run(main())
"""


async def stalled() -> AsyncIterator[bytes]:
    yield b"x" * 100_000
    await asyncio.sleep(300)


@pytest.mark.parametrize(
    ("method", "way"), [("PUT", "/v1/fs/file?path={}/big"), ("POST", "/v1/fs/upload-batch?path={}/tree")]
)
@pytest.mark.promise("P-files-6")
async def test_what_an_upload_had_written_when_the_server_was_killed_is_gone_after_the_next_start(
    method: str, way: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with running_server(tmp_path, "--no-token") as server, httpx.AsyncClient(base_url=server.url) as http:
        headers = {"content-type": "application/octet-stream" if method == "PUT" else "application/x-tar"}
        upload = asyncio.create_task(http.request(method, way.format(work), content=stalled(), headers=headers))
        await until(lambda: list(work.glob(".sandbox-agent-*")) != [])
        server.kill()
        await server.process.wait()
        upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)
    assert len(list(work.iterdir())) == 1
    async with running_server(tmp_path, "--no-token"):
        assert list(work.iterdir()) == []
        assert list((tmp_path / "data/uploads").iterdir()) == []


@pytest.mark.parametrize("renames", range(6))
@pytest.mark.promise("P-files-6")
async def test_a_merge_that_was_cut_short_is_finished(renames: int, tmp_path: Path) -> None:
    work = tmp_path / "root" / "work"
    for name in ("a", "sub/b", "sub/keep"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("old")
    done = subprocess.run([sys.executable, "-c", CUT_SHORT, str(tmp_path), str(renames)], capture_output=True)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    files = FileService([tmp_path / "root"], tmp_path / "root", file_limits(), data_dir=tmp_path / "data")
    await files.mend()
    await files.close()
    found = {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}
    assert found == {"a": "new", "d": "new", "sub/b": "new", "sub/deep/c": "new", "sub/keep": "old"}
    assert not list((tmp_path / "data/uploads").glob("*/*"))


async def test_the_uploads_of_a_server_that_is_alive_are_left_alone(tmp_path: Path) -> None:
    """Ours is alive, and what it is receiving is not abandoned."""
    files = FileService([tmp_path], tmp_path, file_limits(), data_dir=tmp_path / "data")
    other = FileService([tmp_path], tmp_path, file_limits(), data_dir=tmp_path / "data")
    upload = asyncio.create_task(files.write_stream("big", stalled()))
    await until(lambda: list(tmp_path.glob(".sandbox-agent-*")) != [])
    await other.mend()
    assert len(list(tmp_path.glob(".sandbox-agent-*"))) == 1
    upload.cancel()
    await asyncio.gather(upload, return_exceptions=True)
    assert list(tmp_path.glob(".sandbox-agent-*")) == []
    assert not list((tmp_path / "data/uploads").glob("*/*"))
    await files.close()
    await other.close()


async def test_an_upload_needs_no_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").touch()
    files = FileService([tmp_path], tmp_path, file_limits(), data_dir=tmp_path / "data")
    await files.write_bytes("a", b"1")
    await files.write_bytes("b", b"2")
    await files.mend()
    await files.close()
    assert (tmp_path / "a").read_text() + (tmp_path / "b").read_text() == "12"
    assert len(caplog.records) == 1
