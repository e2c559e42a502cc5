"""Which processes belong to a home directory, and what they weigh: read from /proc."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def processes_at_home(home: Path) -> list[int]:
    """Every live process that was started with `home` as its HOME, also those that left their process group."""
    mark = b"HOME=" + os.fsencode(home)
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0") and not _is_zombie(folder):
                    found.append(int(folder.name))
    return found


def group_members(group: int) -> list[int]:
    """Every live process of a process group."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                if os.getpgid(int(folder.name)) == group and not _is_zombie(folder):
                    found.append(int(folder.name))
    return found


def parent_of(pid: int) -> int:
    """0 when it is gone."""
    with contextlib.suppress(OSError):
        return int(_stat(Path(f"/proc/{pid}"))[1])
    return 0


def memory_of(pids: list[int]) -> int:
    """What these take together, in bytes; shared pages are counted once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
            total += int(found[1]) << 10 if found else 0
    return total


def _is_zombie(folder: Path) -> bool:
    return _stat(folder)[0] == "Z"


def _stat(folder: Path) -> list[str]:
    """The fields after the command's name, which may hold anything: state, parent, group, …"""
    return (folder / "stat").read_text().rpartition(")")[2].split()
