"""Removes and copies whole trees through directory descriptors, without following a link."""

from __future__ import annotations

import os
import secrets
import stat

from sandbox_agent.archives.rules import clip
from sandbox_agent.errors import Forbidden, InvalidParams
from sandbox_agent.files.walk import READ_DIRECTORY

MAX_OPEN_LEVELS = 100
_COPY_CHUNK = 8 * 1024 * 1024


def temporary_name(suffix: str) -> str:
    return f".sandbox-agent-{secrets.token_hex(8)}.{suffix}"


def remove(name: str, *, dir_fd: int) -> None:
    """Remove a file, a link, or a directory with all that is in it."""
    try:
        os.unlink(name, dir_fd=dir_fd)
    except (IsADirectoryError, PermissionError):  # the second is what macOS says of a directory
        if not stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            raise
        remove_tree(name, dir_fd=dir_fd)


def remove_tree(name: str, *, dir_fd: int) -> None:
    top = os.open(name, READ_DIRECTORY, dir_fd=dir_fd)
    try:
        deep: list[str] = []
        _empty(top, top, 0, deep)
        while deep:
            buried = deep.pop()
            fd = os.open(buried, READ_DIRECTORY, dir_fd=top)
            try:
                _empty(fd, top, 1, deep)
            finally:
                os.close(fd)
            os.rmdir(buried, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=dir_fd)


def _empty(fd: int, top: int, level: int, deep: list[str]) -> None:
    """Remove everything in `fd`. What is buried too deep is lifted to `top`, for a later turn."""
    with os.scandir(fd) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_directory in entries:
        if not is_directory:
            _unlink(name, fd)
        elif level >= MAX_OPEN_LEVELS:
            lifted = temporary_name("deep")
            os.rename(name, lifted, src_dir_fd=fd, dst_dir_fd=top)
            deep.append(lifted)
        else:
            inner = os.open(name, READ_DIRECTORY, dir_fd=fd)
            try:
                _empty(inner, top, level + 1, deep)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=fd)


def _unlink(name: str, fd: int) -> None:
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        pass


def copy(source: str, target: str, *, source_fd: int, target_fd: int, asked: str, level: int = 0) -> None:
    """Copy a file, link or tree to a name that is free. Special files are refused."""
    status = os.stat(source, dir_fd=source_fd, follow_symlinks=False)
    times = (status.st_atime_ns, status.st_mtime_ns)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(source, dir_fd=source_fd), target, dir_fd=target_fd)
    elif stat.S_ISREG(status.st_mode):
        _copy_file(source, target, source_fd, target_fd)
    elif not stat.S_ISDIR(status.st_mode):
        raise Forbidden(f"{clip(asked)} holds {clip(source)}, which is not a regular file: it cannot change devices")
    elif level >= MAX_OPEN_LEVELS:
        raise InvalidParams(f"{clip(asked)} is nested deeper than {MAX_OPEN_LEVELS} levels: it cannot change devices")
    else:
        _copy_directory(source, target, source_fd, target_fd, asked, level)
        os.utime(target, ns=times, dir_fd=target_fd, follow_symlinks=False)


def _copy_directory(source: str, target: str, source_fd: int, target_fd: int, asked: str, level: int) -> None:
    inner = os.open(source, READ_DIRECTORY, dir_fd=source_fd)
    try:
        os.mkdir(target, 0o700, dir_fd=target_fd)
        made = os.open(target, READ_DIRECTORY, dir_fd=target_fd)
        try:
            with os.scandir(inner) as found:
                names = [entry.name for entry in found]
            for name in names:
                copy(name, name, source_fd=inner, target_fd=made, asked=asked, level=level + 1)
            os.fchmod(made, stat.S_IMODE(os.fstat(inner).st_mode))
        finally:
            os.close(made)
    finally:
        os.close(inner)


def _copy_file(source: str, target: str, source_fd: int, target_fd: int) -> None:
    reader = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source_fd)
    try:
        status = os.fstat(reader)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        writer = os.open(target, flags, 0o600, dir_fd=target_fd)
        try:
            done = 0
            while count := os.sendfile(writer, reader, done, _COPY_CHUNK):
                done += count
            os.fchmod(writer, status.st_mode & 0o777)
            os.utime(writer, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(writer)
    finally:
        os.close(reader)
