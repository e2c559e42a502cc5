"""The processes of this machine, as /proc tells them; where there is no /proc, none."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_STAT_BYTES = 4096
"""More than the line in `/proc/PID/stat` can have."""


class Process(NamedTuple):
    """`started` is in ticks since the boot: with it, a pid that was used again is told apart."""

    pid: int
    parent: int
    session: int
    started: int
    is_dead: bool


def look(pid: int) -> Process | None:
    """One process, also one that is dead and not yet reaped; None when there is none."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # for every child: a third of what a Path takes
        try:
            stat = os.read(fd, _STAT_BYTES)
        finally:
            os.close(fd)
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()  # behind the command's name, which may hold anything
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in (b"Z", b"X"))


def everyone() -> dict[int, Process]:
    """Every process that is alive."""
    try:
        pids = [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208 - hundreds of names
    except OSError:
        return {}
    found = (look(pid) for pid in pids)
    return {process.pid: process for process in found if process is not None and not process.is_dead}


def carries(pid: int, name: str, value: str) -> bool:
    """Whether the process was started with this in its environment."""
    with contextlib.suppress(OSError):
        return f"{name}={value}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def own_children() -> list[int]:
    """The pids of our children, started or adopted, alive or waiting to be reaped."""
    found: list[int] = []
    for listing in _PROC.glob("self/task/*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in listing.read_text().split()]
    return found


def descendants(of: set[int], among: dict[int, Process]) -> set[int]:
    """Children, their children and so on, without `of` themselves."""
    found: set[int] = set()
    fresh = set(of)
    while fresh:
        fresh = {process.pid for process in among.values() if process.parent in fresh} - found - of
        found |= fresh
    return found


def ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while (process := look(pid)) is not None and process.parent not in found:
        pid = process.parent
        found.add(pid)
    return found


def own_name() -> str:
    """Names this process among all that ever ran on this machine."""
    process = look(os.getpid())
    return f"{os.getpid()}-{process.started if process else 0}-{boot()}"


def is_alive(name: str) -> bool:
    """Whether a process that named itself so is alive."""
    pid = name.partition("-")[0]
    process = look(int(pid)) if pid.isdigit() else None
    return process is not None and not process.is_dead and name == f"{pid}-{process.started}-{boot()}"


@cache
def boot() -> str:
    """Names the time since the machine was started: pids and start times begin anew with each."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
