"""The file operations themselves, blocking: the service runs them on worker threads."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from sandbox_agent.archives.rules import clip
from sandbox_agent.errors import Conflict, Forbidden, InvalidParams, NotFound, SandboxAgentError, TooLarge
from sandbox_agent.files.failures import explained
from sandbox_agent.files.paths import Roots, join
from sandbox_agent.files.reading import check_device, open_regular
from sandbox_agent.files.results import FsEntry, FsStat, entry_type, modified, printable
from sandbox_agent.files.trees import copy, remove, remove_tree, temporary_name
from sandbox_agent.files.walk import OPEN_DIRECTORY, READ_DIRECTORY, Missing, Spot, locate


def stat_path(roots: Roots, path: str) -> FsStat:
    with explained(path), locate(roots, path) as spot:
        status = spot.status()
    return FsStat(path=path, entry_type=entry_type(status), size=status.st_size, modified=modified(status))


def list_entries(roots: Roots, path: str, limit: int) -> list[FsEntry]:
    with explained(path), locate(roots, path) as spot:
        fd = os.open(spot.name, READ_DIRECTORY, dir_fd=spot.fd)
        try:
            entries = list(_entries(roots, path, fd, limit))
        finally:
            os.close(fd)
    return sorted(entries, key=lambda entry: entry.name)


def _entries(roots: Roots, path: str, fd: int, limit: int) -> Iterator[FsEntry]:
    prefix = path if path.endswith("/") else f"{path}/"
    with os.scandir(fd) as found:
        for count, entry in enumerate(found):
            if count >= limit:
                raise TooLarge(f"{clip(path)} has more than {limit} entries", limit=limit)
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # it went away while we looked
            if stat.S_ISLNK(status.st_mode):
                status = _behind(roots, prefix + entry.name) or status
            name = printable(entry.name)
            yield FsEntry(
                name=name,
                path=prefix + name,
                entry_type=entry_type(status),
                size=status.st_size,
                modified=modified(status),
            )


def _behind(roots: Roots, link: str) -> os.stat_result | None:
    """What a link leads to; None where that is nowhere or out of the roots: then the link is listed."""
    try:
        with locate(roots, link) as spot:
            return spot.status_or_none()
    except (SandboxAgentError, OSError):
        return None


def open_file(roots: Roots, path: str) -> tuple[int, os.stat_result]:
    with explained(path), locate(roots, path) as spot:
        return open_regular(spot, path)


def open_directory(roots: Roots, path: str) -> tuple[int, str]:
    """A directory held open, and its real path."""
    with explained(path), locate(roots, path) as spot:
        try:
            return os.open(spot.name, OPEN_DIRECTORY, dir_fd=spot.fd), join(spot.real)
        except NotADirectoryError:
            raise InvalidParams(f"{clip(path)} is not a directory", path=path) from None


def make_directory(roots: Roots, path: str) -> None:
    with explained(path), locate(roots, path, missing=Missing.CREATE) as spot:
        if spot.is_root:
            return
        check_device(os.fstat(spot.fd), path)
        try:
            os.mkdir(spot.name, dir_fd=spot.fd)
        except FileExistsError:
            if not stat.S_ISDIR(spot.status().st_mode):
                raise Conflict(f"{clip(path)} exists and is not a directory") from None


def delete_entry(roots: Roots, path: str, *, recursive: bool) -> None:
    with explained(path), locate(roots, path, follow=False) as spot:
        _guard_root(roots, spot, path, "deleted")
        if not stat.S_ISDIR(spot.status().st_mode):
            os.unlink(spot.name, dir_fd=spot.fd)
        elif recursive:
            remove_tree(spot.name, dir_fd=spot.fd)
        else:
            os.rmdir(spot.name, dir_fd=spot.fd)


def move(roots: Roots, source: str, target: str, *, overwrite: bool) -> None:
    """Rename, or copy and delete between devices. Never replaces a directory that has anything in it."""
    with locate(roots, source, follow=False) as old:
        _guard_root(roots, old, source, "moved")
        with explained(source):
            moved = old.status()
        with explained(target), locate(roots, target, follow=False, missing=Missing.REPORT) as new:
            if not new.missing:
                existing = new.status_or_none()
                if old.real == new.real:
                    return
                if existing is not None:
                    _check_replaceable(roots, new, target, moved, existing, overwrite=overwrite)
            if new.real[: len(old.real)] == old.real:
                raise InvalidParams(f"{clip(source)} cannot be moved into itself, to {clip(target)}")
        with explained(target), locate(roots, target, follow=False, missing=Missing.CREATE) as new:
            _rename(old, new, source)


def _rename(old: Spot, new: Spot, source: str) -> None:
    try:
        os.rename(old.name, new.name, src_dir_fd=old.fd, dst_dir_fd=new.fd)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    staged = temporary_name("move")
    try:
        copy(old.name, staged, source_fd=old.fd, target_fd=new.fd, asked=source)
        os.rename(staged, new.name, src_dir_fd=new.fd, dst_dir_fd=new.fd)
    except BaseException:
        try:
            remove(staged, dir_fd=new.fd)
        except FileNotFoundError:
            pass
        raise
    remove(old.name, dir_fd=old.fd)


def _check_replaceable(
    roots: Roots, new: Spot, target: str, moved: os.stat_result, existing: os.stat_result, *, overwrite: bool
) -> None:
    if not overwrite:
        raise Conflict(f"{clip(target)} exists already, and overwrite was not asked for")
    if new.is_root or roots.holds_root(new.real):
        raise Forbidden(f"{clip(target)} is a root of this server: it cannot be replaced")
    if stat.S_ISDIR(existing.st_mode) and not stat.S_ISDIR(moved.st_mode):
        raise Conflict(f"{clip(target)} is a directory: a file cannot take its place")
    if stat.S_ISDIR(moved.st_mode) and not stat.S_ISDIR(existing.st_mode):
        raise Conflict(f"{clip(target)} is not a directory: a directory cannot take its place")


def _guard_root(roots: Roots, spot: Spot, path: str, verb: str) -> None:
    if spot.is_root or roots.holds_root(spot.real):
        raise Forbidden(f"{clip(path)} is a root of this server, or holds one: it cannot be {verb}")
    if spot.status_or_none() is None:
        raise NotFound(f"{clip(path)} does not exist")
