"""Moves a staged tree into a directory by renames: all of it, or nothing."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from sandbox_agent.archives.rules import Parts, clip
from sandbox_agent.errors import Conflict
from sandbox_agent.files.walk import READ_DIRECTORY, open_beneath


class _Step(NamedTuple):
    place: Parts
    name: str
    saved: str | None


def merge(tree: int, target: int, saved: int) -> None:
    """Move what is in the directory `tree` into `target`; replaced files are kept in `saved` meanwhile.

    Directories that both have are joined. A directory never takes the place of a file or a link, nor the
    other way round: that is found out before the first rename. A failure later on is undone.
    """
    _check(tree, target, ())
    steps: list[_Step] = []
    try:
        _move(tree, target, saved, (), steps)
    except BaseException:
        _undo(steps, tree, target, saved)
        raise


def _check(tree: int, target: int, place: Parts) -> None:
    for name, is_directory in _children(tree):
        mode = _mode(name, target)
        if mode is None:
            continue
        if is_directory != stat.S_ISDIR(mode):
            shown = clip("/".join((*place, name)))
            if is_directory:
                raise Conflict(f"{shown} is a directory in the archive, and exists but is not one")
            raise Conflict(f"{shown} exists and is a directory; in the archive it is not")
        if is_directory:
            inner, other = _open_both(name, tree, target)
            try:
                _check(inner, other, (*place, name))
            finally:
                os.close(inner)
                os.close(other)


def _move(tree: int, target: int, saved: int, place: Parts, steps: list[_Step]) -> None:
    for name, is_directory in _children(tree):
        mode = _mode(name, target)
        if is_directory and mode is not None and stat.S_ISDIR(mode):
            inner, other = _open_both(name, tree, target)
            try:
                _move(inner, other, saved, (*place, name), steps)
            finally:
                os.close(inner)
                os.close(other)
            continue
        kept = _save(name, target, saved, str(len(steps))) if mode is not None else None
        steps.append(_Step(place, name, kept))
        os.rename(name, name, src_dir_fd=tree, dst_dir_fd=target)


def _save(name: str, target: int, saved: int, kept: str) -> str:
    """Keep what is about to be replaced. A second link leaves it in place; where there are none, it moves."""
    try:
        os.link(name, kept, src_dir_fd=target, dst_dir_fd=saved, follow_symlinks=False)
    except OSError:
        os.rename(name, kept, src_dir_fd=target, dst_dir_fd=saved)
    return kept


def _undo(steps: list[_Step], tree: int, target: int, saved: int) -> None:
    for step in reversed(steps):
        try:
            fd = open_beneath(target, step.place)
        except OSError:
            continue  # somebody took the directory away: there is nothing left to mend in it
        try:
            if step.saved is None:
                back = open_beneath(tree, step.place)
                try:
                    os.rename(step.name, step.name, src_dir_fd=fd, dst_dir_fd=back)
                finally:
                    os.close(back)
            else:
                os.rename(step.saved, step.name, src_dir_fd=saved, dst_dir_fd=fd)
        except OSError:
            continue  # the rename that failed is the last step; it has nothing to take back
        finally:
            os.close(fd)


def _children(fd: int) -> list[tuple[str, bool]]:
    with os.scandir(fd) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]


def _mode(name: str, fd: int) -> int | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _open_both(name: str, tree: int, target: int) -> tuple[int, int]:
    inner = os.open(name, READ_DIRECTORY, dir_fd=tree)
    try:
        return inner, os.open(name, READ_DIRECTORY, dir_fd=target)
    except OSError:
        os.close(inner)
        raise
