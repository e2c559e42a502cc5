"""Runs the load generators and gives what they print."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.workshop import build_program

Figures = dict[str, Any]


def post(port: int, requests: Sequence[bytes], *, seconds: float) -> Figures:
    """One keep-alive client per request, each sending its own again and again."""
    with tempfile.TemporaryDirectory() as folder:
        command = [build_program("post_load"), str(port), str(seconds), *_files(folder, requests)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    if done.returncode:
        raise RuntimeError(f"post_load: {done.stderr[:1000]}")
    figures: Figures = json.loads(done.stdout)
    if figures["failed"]:
        raise RuntimeError(f"{figures['failed']} requests failed, the first: {done.stderr[:1000]}")
    return figures


def read_streams(
    port: int,
    requests: Sequence[bytes],
    *,
    expected: int,
    begin: Callable[[], None],
    idle_ms: int = 3000,
    bytes_per_s: int = 0,
    stall_ms: int = 0,
) -> Figures:
    """Read one stream per request until each has `expected` events; `begin` is called when all are open."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = [str(number) for number in (port, expected, idle_ms, bytes_per_s, stall_ms)]
        command = [build_program("sse_read"), *numbers, *_files(folder, requests)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
            if reader.stdout is None or reader.stderr is None:
                raise RuntimeError("a child without pipes")
            if reader.stdout.readline() != "ready\n":
                raise RuntimeError(f"sse_read: {reader.stderr.read()[:1000]}")
            begin()
            figures: Figures = json.loads(reader.stdout.readline())
            return figures


def _files(folder: str, requests: Sequence[bytes]) -> list[str]:
    paths = [Path(folder) / str(number) for number in range(len(requests))]
    for path, request in zip(paths, requests, strict=True):
        path.write_bytes(request)
    return [str(path) for path in paths]


def transfer(port: int, request: bytes, body: Path | None = None) -> Figures:
    """One request with a large body or a large answer."""
    with tempfile.TemporaryDirectory() as folder:
        files = [*_files(folder, [request]), *([str(body)] if body is not None else [])]
        done = subprocess.run(
            [build_program("transfer"), str(port), *files], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"transfer: {done.stderr[:1000]}")
    figures: Figures = json.loads(done.stdout)
    return figures
