"""An archive is unpacked into its directory within its limits, or refused with an InstallError."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from sandbox_agent.archives.unpack import unpack
from sandbox_agent.errors import InstallError

MOST_BYTES = 1 << 20


def check(data: bytes) -> None:
    for name in ("a.tar", "a.tar.gz", "a.zip"):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "archive").write_bytes(data)
            try:
                unpack(home / "archive", name, home / "out", "tool", max_bytes=MOST_BYTES)
            except InstallError:
                pass
            assert {entry.name for entry in home.iterdir()} <= {"archive", "out"}
            assert (home / "archive").read_bytes() == data
            _check_inside(home / "out")


def _check_inside(out: Path) -> None:
    """No link leads out, nothing is a device, and no more was written than is allowed."""
    size = 0
    for folder, folders, files in os.walk(out):
        for entry in (Path(folder, name) for name in folders + files):
            assert entry.is_symlink() or entry.is_file() or entry.is_dir()
            assert entry.resolve().is_relative_to(out.resolve()), entry
            size += entry.lstat().st_size if entry.is_file() and not entry.is_symlink() else 0
    assert size <= MOST_BYTES
