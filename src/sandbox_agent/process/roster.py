"""The children that we have, noted on disk too, so that none outlives us: not an orderly stop, not a kill -9.

Every child carries the name of our run in its environment, and so do those that it starts. What an earlier run has
left is found at the next start on the same data: by that name, and by the pids and start times that the run noted.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox_agent.process import table
from sandbox_agent.process.spawn import seal

RUN_VARIABLE = "SANDBOX_AGENT_RUN"
_log = logging.getLogger(__name__)
_FOLDER, _CHILDREN = "running", "children"
_PID_WIDTH, _TIME_WIDTH = 10, 20
_BLANK = b" " * (_PID_WIDTH + 1 + _TIME_WIDTH) + b"\n"
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 25
"""How often we look for what is left while we kill it, since it may start more."""
_PAUSE = 0.02
_REAP_EVERY = 5.0


class Roster:
    """The children of this process; after `open` each has a line with its pid and start time in a file of the run.

    Lines are written in place, and used again: to make a file for each child takes longer than many a child lives."""

    def __init__(self) -> None:
        self._children: dict[int, int | None] = {}
        """By pid, which line it has."""
        self._free: list[int] = []
        """Lines that were used before."""
        self._lines = 0
        self._folder: Path | None = None
        self._file = -1
        self.is_sealed = False
        """Children inherit nothing but what they are given: see `seal`."""

    @property
    def run(self) -> str | None:
        """The name of our run, once it has one."""
        return self._folder.name if self._folder is not None else None

    @property
    def mark(self) -> dict[str, str]:
        """What a child's environment says of us."""
        return {RUN_VARIABLE: self.run} if self.run is not None else {}

    def open(self, data_dir: Path) -> None:
        """Note children under `data_dir` from now on. A disk that cannot take it costs the note, never the child."""
        folder = data_dir / _FOLDER / table.own_name()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(folder / _CHILDREN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            _log.warning("children cannot be noted under %s: %s", folder.parent, error)
        else:
            self._folder, self._lines, self._free = folder, 0, []

    def close(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            os.close(self._file)
            self._children = dict.fromkeys(self._children)  # whoever is left has no line any more
            shutil.rmtree(folder, ignore_errors=True)

    def add(self, pid: int) -> None:
        self._children[pid] = None
        process = table.look(pid) if self._folder is not None else None
        if process is not None:
            line = self._free.pop() if self._free else self._lines
            if self._write(line, b"%*d %*d\n" % (_PID_WIDTH, pid, _TIME_WIDTH, process.started)):
                self._lines = max(self._lines, line + 1)
                self._children[pid] = line

    def remove(self, pid: int) -> None:
        line = self._children.pop(pid, None)
        if line is not None and self._write(line, _BLANK):
            self._free.append(line)

    def _write(self, line: int, content: bytes) -> bool:
        try:
            return os.pwrite(self._file, content, line * len(_BLANK)) == len(_BLANK)
        except OSError:
            return False

    async def reap_adopted(self) -> None:
        """For ever: let go of the dead that were left to us by our children. Without this they would pile up."""
        while True:
            await asyncio.sleep(_REAP_EVERY)
            for pid in await asyncio.to_thread(table.own_children):
                if pid not in self._children:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait


ROSTER = Roster()
"""One, as a process has one set of children."""


@contextmanager
def no_orphans(data_dir: Path) -> Iterator[None]:
    """Within the block children are noted under `data_dir`, and what they leave behind is ours; it ends with the block.

    What earlier runs on `data_dir` have left is ended first, unless their server is alive. All of this needs Linux;
    elsewhere only the group of a child ends with it.
    """
    end_leftovers(data_dir)
    seal()
    ROSTER.is_sealed = True
    ROSTER.open(data_dir)
    _adopt_strays()
    try:
        yield
    finally:
        _kill(_ours)
        ROSTER.close()


def end_leftovers(data_dir: Path) -> None:
    """End what servers on `data_dir` have started, where these servers are no longer alive themselves."""
    try:
        runs = [entry for entry in (data_dir / _FOLDER).iterdir() if entry.is_dir()]
    except OSError:
        return
    for run in runs:
        if table.is_alive(run.name):
            continue
        ended = _kill(lambda run=run: _left_by(run))  # type: ignore[misc]
        if ended:
            _log.warning("ended what an earlier server had left running processes=%s", sorted(ended))
        shutil.rmtree(run, ignore_errors=True)


def _left_by(run: Path) -> set[int]:
    """Whatever carries the run's name, and the noted children with their sessions, should they have dropped it."""
    everyone = table.everyone()
    leaders = set()
    for pid, started in _noted(run):
        process = everyone.get(pid)
        if process is not None and process.started == started and run.name.endswith(table.boot()):
            leaders.add(process.pid)
    marked = {pid for pid in everyone if table.carries(pid, RUN_VARIABLE, run.name)}
    found = marked | {process.pid for process in everyone.values() if process.session in leaders}
    return found | table.descendants(found, everyone)


def _noted(run: Path) -> Iterator[tuple[int, int]]:
    """The pids and start times of children that a run had, and perhaps of some that it had no more."""
    with contextlib.suppress(OSError):
        for line in (run / _CHILDREN).read_bytes().splitlines():
            fields = line.split()
            if len(fields) == 2 and all(map(bytes.isdigit, fields)):
                yield int(fields[0]), int(fields[1])


def _ours() -> set[int]:
    everyone = table.everyone()
    run = ROSTER.run
    marked = {pid for pid in everyone if run is not None and table.carries(pid, RUN_VARIABLE, run)}
    return marked | table.descendants({os.getpid()}, everyone)


def _kill(find: Callable[[], set[int]]) -> set[int]:
    """KILL what `find` names until it names nobody, never ourselves nor those who started us. Gives who was killed."""
    spared = {os.getpid(), *table.ancestors(os.getpid())}
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        victims = find() - spared
        if not victims:
            break
        for pid in victims:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= victims
        time.sleep(_PAUSE)
    return killed


def _adopt_strays() -> None:
    """Have what our children's children leave behind given to us instead of to init, where the system can do that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
