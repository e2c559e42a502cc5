"""Looks a path up by walking it, one directory descriptor at a time.

The kernel never follows a symbolic link for us: each one is read and resolved here, against the roots. The
walk ends with a directory that is held open and a name in it, so that a link put there later leads nowhere.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from enum import Enum
from types import TracebackType

import msgspec

from sandbox_agent.archives.rules import Parts, clip
from sandbox_agent.errors import Forbidden, NotFound
from sandbox_agent.files.failures import explain
from sandbox_agent.files.paths import Roots, Standing, join, split

MAX_LINKS = 40
MAX_STEPS = 8192
_NONE = -1

_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
OPEN_DIRECTORY = _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Missing(Enum):
    """What to do about parent directories that do not exist."""

    REFUSE = "refuse"
    REPORT = "report"
    CREATE = "create"


class Spot(msgspec.Struct):
    """Where a path leads: `name` in the directory `fd`. A root itself has the name `.`.

    `missing` are the further names below `name`, when `name` is a parent that does not exist.
    """

    fd: int
    name: str
    real: Parts
    missing: Parts = ()

    @property
    def is_root(self) -> bool:
        return self.name == "."

    def status(self) -> os.stat_result:
        return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)

    def status_or_none(self) -> os.stat_result | None:
        try:
            return self.status()
        except FileNotFoundError:
            return None

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Spot:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def locate(roots: Roots, asked: str, *, follow: bool = True, missing: Missing = Missing.REFUSE) -> Spot:
    """Walk to the absolute path `asked`; `follow` says whether a link at its very end is followed.

    The last name need not exist. Raises Forbidden as soon as the way leaves the roots, whatever lies there.
    """
    walk = _Walk(roots, asked)
    try:
        return walk.run(follow=follow, missing=missing)
    except OSError as error:
        raise explain(error, asked) from error
    finally:
        walk.drop()


def open_beneath(fd: int, names: Iterable[str], flags: int = OPEN_DIRECTORY) -> int:
    """Open a directory below `fd` without following any link."""
    current = os.open(".", flags, dir_fd=fd)
    for name in names:
        current, previous = _step(current, name, flags), current
        os.close(previous)
    return current


def _step(fd: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=fd)
    except OSError:
        os.close(fd)
        raise


class _Walk:
    def __init__(self, roots: Roots, asked: str) -> None:
        self._roots = roots
        self._asked = asked
        self._todo = list(reversed(roots.canonical(split(asked))))
        self._real: list[str] = []
        self._fd = _NONE
        self._links = 0
        self._steps = 0

    def run(self, *, follow: bool, missing: Missing) -> Spot:
        self._stand(())
        while self._todo:
            name = self._todo.pop()
            if name == "..":
                self._stand(tuple(self._real[:-1]))
            elif self._fd == _NONE:
                self._stand((*self._real, name))
            elif not self._todo:
                target = self._link(name) if follow else None
                if target is None:
                    return self._spot(name)
                self._turn(target)
            elif not self._enter(name, missing):
                return self._spot(name, tuple(reversed(self._todo)))
        return self._end()

    def drop(self) -> None:
        if self._fd != _NONE:
            os.close(self._fd)
            self._fd = _NONE

    def _spot(self, name: str, missing: Parts = ()) -> Spot:
        if ".." in missing:
            raise NotFound(f"{clip(self._asked)} does not exist")
        fd, self._fd = self._fd, _NONE
        return Spot(fd, name, (*self._real, name), missing)

    def _end(self) -> Spot:
        """The path ended in a directory we stand in, through `..`, a link to a root, or a root's own name."""
        if self._fd == _NONE:
            raise self._roots.refuse(self._asked)
        here = tuple(self._real)
        above = here[:-1]
        if not here or self._roots.standing(above) is not Standing.INSIDE:
            fd, self._fd = self._fd, _NONE
            return Spot(fd, ".", here)
        self._stand(above)
        return self._spot(here[-1])

    def _stand(self, place: Parts) -> None:
        """Go to a place whose every name is a real directory; above the roots there is nothing to hold."""
        self.drop()
        self._real = list(place)
        root = self._roots.root_of(place)
        if root is not None:
            self._count(len(place) - len(root) + 1)
            top = os.open(join(root), OPEN_DIRECTORY)
            try:
                self._fd = open_beneath(top, place[len(root) :])
            finally:
                os.close(top)
        elif self._roots.standing(place) is Standing.OUTSIDE:
            raise self._roots.refuse(self._asked)

    def _enter(self, name: str, missing: Missing) -> bool:
        """Step into `name`, a directory or a link to one. False when it is missing and that is to be told."""
        self._count(1)
        while True:
            try:
                fd = os.open(name, OPEN_DIRECTORY, dir_fd=self._fd)
            except FileNotFoundError:
                if missing is Missing.REFUSE:
                    raise
                if missing is Missing.REPORT:
                    return False
                self._make(name)
                continue
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                target = self._link(name)
                if target is None:
                    raise
                self._turn(target)
                return True
            os.close(self._fd)
            self._fd = fd
            self._real.append(name)
            return True

    def _make(self, name: str) -> None:
        self._count(1)
        try:
            os.mkdir(name, dir_fd=self._fd)
        except FileExistsError:
            pass  # somebody else made it, or it is a link to nowhere: the next look tells

    def _link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self._fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise

    def _turn(self, target: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise OSError(errno.ELOOP, "too many symbolic links")
        parts = split(target)
        if target.startswith("/"):
            parts = self._roots.canonical(parts)
            self._stand(())
        self._todo.extend(reversed(parts))

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise Forbidden(f"{clip(self._asked)} takes more than {MAX_STEPS} steps to look up")
