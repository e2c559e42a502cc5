"""Where things are: the cache, the programs in C that are built into it, and the peer that is installed there."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"
PEER_VERSION = "0.4.2"
_SOURCES = Path(__file__).parent / "c"
_PEER_BINARY = "node_modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent"


def set_aside(folder: Path) -> None:
    """Keep until `clear_away`: on ext4, new files are made slowly for minutes after many were deleted."""
    aside = CACHE / "aside"
    aside.mkdir(parents=True, exist_ok=True)
    folder.rename(aside / str(time.time_ns()))


def clear_away() -> None:
    shutil.rmtree(CACHE / "aside", ignore_errors=True)


def keep_priority(pid: int) -> None:
    """Run a process in a session of its own as eagerly as we run: Linux may share the processor out among sessions
    first, so that `nice` counts only within each."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(os.nice(0)))


def build_program(name: str) -> Path:
    """The program `c/NAME.c`, compiled anew when its source is newer."""
    source, target = _SOURCES / f"{name}.c", CACHE / "bin" / name
    newest = max(path.stat().st_mtime for path in (source, _SOURCES / "http.h"))
    if not target.exists() or target.stat().st_mtime < newest:
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = ["-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-pthread"]
        subprocess.run(["cc", *flags, "-o", target, source], check=True)
    return target


def find_peer() -> Path | None:
    """The peer's server, installed on first use; None where that is not possible."""
    folder = CACHE / "peer"
    binary = folder / _PEER_BINARY
    if not binary.exists():
        if shutil.which("npm") is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--prefix",
            folder,
            f"@sandbox-agent/cli@{PEER_VERSION}",
        ]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not binary.exists():
        return None
    binary.chmod(0o755)
    return binary
