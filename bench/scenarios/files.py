"""Large files in and out, and a tar of many small ones."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from urllib.parse import quote

from bench import load
from bench.load import Figures
from bench.servers import Server
from bench.workshop import CACHE, set_aside


class NotServed(Exception):
    """The server has no such route, or refuses such a size."""


def get_file(server: Server, *, mebibytes: int) -> Figures:
    with server.running():
        path = server.folder / "large.bin"
        path.write_bytes(_large_file(mebibytes).read_bytes())
        before = server.cpu()
        figures = load.transfer(server.port, _head(server, "GET", "/v1/fs/file", path))
        _require(figures, 200, mebibytes << 20)
        return {**_speed(server, mebibytes, figures), "cpu_ms": (server.cpu() - before) * 1000}


def put_file(server: Server, *, mebibytes: int) -> Figures:
    with server.running():
        path = server.folder / "put.bin"
        size = mebibytes << 20
        more = f"content-type: application/octet-stream\r\ncontent-length: {size}\r\n"
        before = server.cpu()
        figures = load.transfer(server.port, _head(server, "PUT", "/v1/fs/file", path, more), _large_file(mebibytes))
        _require(figures, 200)
        if path.stat().st_size != size:
            raise RuntimeError(f"{path} has {path.stat().st_size} bytes instead of {size}")
        return {**_speed(server, mebibytes, figures), "cpu_ms": (server.cpu() - before) * 1000}


def upload_tar(server: Server, *, files: int) -> Figures:
    with server.running():
        archive = _tar(files)
        target = server.folder / "unpacked"
        more = f"content-type: application/x-tar\r\ncontent-length: {archive.stat().st_size}\r\n"
        figures = load.transfer(server.port, _head(server, "POST", "/v1/fs/upload-batch", target, more), archive)
        _require(figures, 200)
        found = sum(1 for path in target.rglob("*") if path.is_file())
        if found != files:
            raise RuntimeError(f"{found} files instead of {files}")
        set_aside(target)
        return {"ms": figures["seconds"] * 1000, "rss_mb": server.memory("VmHWM")}


def _speed(server: Server, mebibytes: int, figures: Figures) -> Figures:
    return {"mb_per_s": (mebibytes << 20) / 1e6 / figures["seconds"], "rss_mb": server.memory("VmHWM")}


def _head(server: Server, verb: str, route: str, path: Path, more: str = "") -> bytes:
    auth = "".join(f"{name}: {value}\r\n" for name, value in server.auth.items())
    return f"{verb} {route}?path={quote(str(path))} HTTP/1.1\r\nhost: 127.0.0.1\r\n{auth}{more}\r\n".encode()


def _require(figures: Figures, status: int, size: int | None = None) -> None:
    if figures["status"] in {404, 413}:
        raise NotServed(str(figures["status"]))
    if figures["status"] != status or (size is not None and figures["bytes"] != size):
        raise RuntimeError(f"{figures}")


def _large_file(mebibytes: int) -> Path:
    path = CACHE / f"{mebibytes}MiB.bin"
    if not path.exists():
        block = bytes(range(256)) * 4096
        with path.open("wb") as file:
            for _ in range(mebibytes):
                file.write(block)
    return path


def _tar(files: int) -> Path:
    path = CACHE / f"{files}-small-files.tar"
    if not path.exists():
        with tarfile.open(path, "w") as archive:
            for number in range(files):
                entry = tarfile.TarInfo(f"folder{number % 40}/file{number}.txt")
                content = f"file {number}\n".encode() * 30
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return path
