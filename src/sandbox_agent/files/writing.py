"""A file that is being received: it appears under its name whole, or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence

from sandbox_agent.archives.rules import clip
from sandbox_agent.errors import Conflict, Forbidden, TooLarge
from sandbox_agent.files.failures import explained
from sandbox_agent.files.journal import Note, UploadJournal
from sandbox_agent.files.paths import Roots, join
from sandbox_agent.files.reading import check_device, check_regular
from sandbox_agent.files.trees import temporary_name
from sandbox_agent.files.walk import Missing, Spot, locate

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PendingFile:
    """Collects bytes in a temporary file in the nearest directory that exists, then renames it into place.

    Parent directories come into being only with the rename. `abort` may be called at any time, from any
    thread, and after `commit` does nothing.
    """

    def __init__(self, roots: Roots, path: str, max_bytes: int | None, journal: UploadJournal) -> None:
        self._roots = roots
        self._journal = journal
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._is_over = False
        self.bytes_written = 0
        self._spot = locate(roots, path, missing=Missing.REPORT)
        try:
            with explained(path):
                _check_target(self._spot, path)
                self._name = temporary_name("part")
                journal.write(Note(join(self._spot.real[:-1]), self._name))
                self._fd = os.open(self._name, _CREATE, 0o666, dir_fd=self._spot.fd)
        except BaseException:
            self._spot.close()
            raise

    def write(self, pieces: Sequence[bytes]) -> None:
        with self._lock, explained(self._path):
            if self._is_over:
                return
            self.bytes_written += sum(map(len, pieces))
            if self._max_bytes is not None and self.bytes_written > self._max_bytes:
                raise TooLarge(f"{clip(self._path)} would exceed {self._max_bytes} bytes", limit=self._max_bytes)
            _write_all(self._fd, pieces)

    def commit(self) -> None:
        with self._lock, explained(self._path):
            if self._is_over:
                raise Conflict(f"the upload to {clip(self._path)} was given up")
            with locate(self._roots, self._path, missing=Missing.CREATE) as spot:
                existing = _check_target(spot, self._path)
                if existing is not None:
                    _inherit(self._fd, existing)
                os.rename(self._name, spot.name, src_dir_fd=self._spot.fd, dst_dir_fd=spot.fd)
            self._end()

    def abort(self) -> None:
        with self._lock:
            if self._is_over:
                return
            try:
                os.unlink(self._name, dir_fd=self._spot.fd)
            except FileNotFoundError:
                pass
            finally:
                self._end()

    def _end(self) -> None:
        self._is_over = True
        os.close(self._fd)
        self._spot.close()
        self._journal.drop(self._name)


def _check_target(spot: Spot, path: str) -> os.stat_result | None:
    """Refuse to replace anything but a regular file that may be written. Gives its status, if it exists."""
    check_device(os.fstat(spot.fd), path)
    status = None if spot.missing else spot.status_or_none()
    if status is None:
        return None
    check_regular(status, path)
    if not os.access(spot.name, os.W_OK, dir_fd=spot.fd):
        raise Forbidden(f"{clip(path)} may not be written by the server's user")
    return status


def _inherit(fd: int, existing: os.stat_result) -> None:
    """Keep the permissions, and the owner where that is allowed. Set-id bits go, as they do on any write."""
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (existing.st_uid, existing.st_gid):
        try:
            os.fchown(fd, existing.st_uid, existing.st_gid)
        except PermissionError:
            pass
    os.fchmod(fd, stat.S_IMODE(existing.st_mode) & 0o777)


def _write_all(fd: int, pieces: Sequence[bytes]) -> None:
    for start in range(0, len(pieces), 512):
        batch = pieces[start : start + 512]
        left = sum(map(len, batch)) - os.writev(fd, batch)
        if left:
            rest = memoryview(b"".join(batch))[-left:]
            while rest:
                rest = rest[os.write(fd, rest) :]
