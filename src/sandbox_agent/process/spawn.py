"""Starting a program by `posix_spawn`: a command that somebody waits for starts sooner than by Popen's preparations."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_DESCRIPTORS = Path("/proc/self/fd")
_PYTHONS_OWN = {getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)}
"""Those that Python ignores; a program gets them as the system has them."""
_DEFAULT_SIGNALS = tuple(
    number
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    if number in _PYTHONS_OWN or signal.getsignal(number) is not signal.SIG_IGN
)
"""All but what whoever started us has us ignore. Each that is not named here is asked for in the child, one by one."""


class Spawned:
    """A program without input, whose outputs are pipes: as Popen would say it."""

    stdin = None

    def __init__(self, pid: int, stdout: IO[bytes], stderr: IO[bytes] | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            try:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:  # SIGCHLD is ignored, and the system has reaped it
                self.returncode = 0
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def spawn(command: Sequence[str], env: Mapping[str, str], *, merges: bool) -> Spawned:
    """Start `command` in a session of its own, in our directory. `merges` puts both of its outputs into one pipe.

    Only after `seal`: what can be inherited is inherited here. Raises OSError, ValueError."""
    ends: list[int] = []
    try:
        ends += os.pipe()
        if not merges:
            ends += os.pipe()
        out, err = ends[1], ends[-1]
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ]
        pid = os.posix_spawn(
            command[0], tuple(command), env, file_actions=actions, setsid=True, setsigdef=_DEFAULT_SIGNALS
        )
    except BaseException:
        for end in ends:
            os.close(end)
        raise
    for end in ends[1::2]:
        os.close(end)
    pipes = [open(end, "rb", buffering=0) for end in ends[::2]]  # noqa: SIM115, PTH123 - closed by whoever gets them
    return Spawned(pid, pipes[0], None if merges else pipes[1])


def seal() -> None:
    """Let no program inherit what whoever started us has left open; what Python opens is closed to them anyway."""
    with contextlib.suppress(OSError):
        for entry in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - numbers, not paths
            if int(entry) > 2:
                with contextlib.suppress(OSError):  # the listing's own
                    os.set_inheritable(int(entry), False)
