"""Which files may be read or replaced: regular ones, on file systems that hold data."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path

from sandbox_agent.archives.rules import clip
from sandbox_agent.errors import Conflict, Forbidden
from sandbox_agent.files.walk import Spot

# fmt: off
_PSEUDO = frozenset({
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs",
    "fusectl", "mqueue", "nsfs", "proc", "pstore", "securityfs", "selinuxfs", "sysfs", "tracefs",
})
# fmt: on
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(spot: Spot, asked: str) -> tuple[int, os.stat_result]:
    """Open for reading. Looks before it opens, as opening a device or a FIFO has effects, and again after."""
    check_regular(spot.status(), asked)
    fd = os.open(spot.name, _READ, dir_fd=spot.fd)
    try:
        status = os.fstat(fd)
        check_regular(status, asked)
    except BaseException:
        os.close(fd)
        raise
    return fd, status


def check_regular(status: os.stat_result, asked: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise Conflict(f"{clip(asked)} is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise Forbidden(f"{clip(asked)} is not a regular file")
    check_device(status, asked)


def check_device(status: os.stat_result, asked: str) -> None:
    """Refuse what the kernel makes up, such as /proc: it has secrets, and files without an end."""
    kind = file_system(status.st_dev)
    if kind in _PSEUDO:
        raise Forbidden(f"{clip(asked)} is part of the kernel's {kind} file system, not a stored file")


@lru_cache(maxsize=256)
def file_system(device: int) -> str | None:
    """The type of the file system with this device number, where the system tells."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ", 3)
        if len(fields) > 2 and fields[2] == wanted:
            return after.split(" ", 1)[0]
    return None
