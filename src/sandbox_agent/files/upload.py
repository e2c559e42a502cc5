"""An archive that is being received: its files appear in the target together, or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable

from sandbox_agent.archives.gunzip import MAGIC, Gunzip
from sandbox_agent.archives.rules import ArchiveLimits, clip
from sandbox_agent.archives.staging import Staging
from sandbox_agent.archives.tar import TarReader
from sandbox_agent.errors import BadArchive, Conflict
from sandbox_agent.files.failures import explained
from sandbox_agent.files.journal import SAVED, TREE, Note, UploadJournal
from sandbox_agent.files.merge import merge
from sandbox_agent.files.paths import Roots, join
from sandbox_agent.files.reading import check_device
from sandbox_agent.files.trees import remove_tree, temporary_name
from sandbox_agent.files.walk import READ_DIRECTORY, Missing, locate

MAX_REPORTED = 1024


class PendingTree:
    """Unpacks into a hidden directory inside the target, or in the nearest parent that exists.

    `abort` may be called at any time, from any thread; after `commit` it does nothing.
    """

    def __init__(
        self, roots: Roots, path: str, limits: ArchiveLimits, journal: UploadJournal, *, is_gzip: bool | None
    ) -> None:
        self._roots = roots
        self._journal = journal
        self._path = path
        self._lock = threading.Lock()
        self._is_over = False
        self._is_gzip = is_gzip
        self._head = b""
        self._gunzip = Gunzip(limits)
        self._open: list[int] = []
        self._has_staging = False
        self._name = temporary_name("unpack")
        with explained(path):
            try:
                self._make_staging()
            except BaseException:
                self._end()
                raise
        self._staging = Staging(self._tree, limits)
        self._reader = TarReader(self._staging, limits)

    def feed(self, pieces: Iterable[bytes]) -> None:
        with self._lock, explained(self._path):
            if not self._is_over:
                self._feed(b"".join(pieces))

    def commit(self) -> tuple[list[str], bool]:
        """Put everything in place. Gives the first paths that were in it, and whether there are more."""
        with self._lock, explained(self._path):
            if self._is_over:
                raise Conflict(f"the upload to {clip(self._path)} was given up")
            self._finish()
            self._staging.make_links()
            self._staging.close()
            if self._is_new:
                self._place()
            else:
                self._merge(self._anchor)
            names = self._staging.names
            self._end()
        prefix = self._path.rstrip("/")
        paths = [f"{prefix}/{'/'.join(parts)}" for parts in names[:MAX_REPORTED]]
        return paths, len(names) > MAX_REPORTED

    def abort(self) -> None:
        with self._lock:
            if not self._is_over:
                self._staging.close()
                self._end()

    def _make_staging(self) -> None:
        with locate(self._roots, self._path, missing=Missing.REPORT) as spot:
            check_device(os.fstat(spot.fd), self._path)
            status = None if spot.missing else spot.status_or_none()
            self._is_new = status is None
            if status is not None and not stat.S_ISDIR(status.st_mode):
                raise Conflict(f"{clip(self._path)} exists and is not a directory")
            self._anchor = self._hold("." if self._is_new else spot.name, spot.fd)
            self._directory = join(spot.real[:-1] if self._is_new else spot.real)
        self._journal.write(Note(self._directory, self._name))
        os.mkdir(self._name, 0o700, dir_fd=self._anchor)
        self._has_staging = True
        self._root = self._hold(self._name, self._anchor)
        os.mkdir(TREE, dir_fd=self._root)
        os.mkdir(SAVED, 0o700, dir_fd=self._root)
        self._tree = self._hold(TREE, self._root)
        self._saved = self._hold(SAVED, self._root)

    def _hold(self, name: str, dir_fd: int) -> int:
        fd = os.open(name, READ_DIRECTORY, dir_fd=dir_fd)
        self._open.append(fd)
        return fd

    def _feed(self, data: bytes) -> None:
        if self._is_gzip is None:
            data = self._head + data
            if len(data) < len(MAGIC):
                self._head = data
                return
            self._is_gzip = data.startswith(MAGIC)
        if self._is_gzip:
            for piece in self._gunzip.feed(data):
                self._reader.feed(piece)
        else:
            self._reader.feed(data)

    def _finish(self) -> None:
        if self._is_gzip is None:
            raise BadArchive("the archive is empty")
        self._gunzip.finish()
        self._reader.finish()

    def _place(self) -> None:
        """The target did not exist when we began: one rename makes it, unless somebody was faster."""
        with locate(self._roots, self._path, missing=Missing.CREATE) as spot:
            if spot.status_or_none() is None:
                os.rename(TREE, spot.name, src_dir_fd=self._root, dst_dir_fd=spot.fd)
                return
            target = os.open(spot.name, READ_DIRECTORY, dir_fd=spot.fd)
            try:
                self._merge(target)
            finally:
                os.close(target)

    def _merge(self, target: int) -> None:
        self._journal.write(Note(self._directory, self._name, target=self._path))
        try:
            merge(self._tree, target, self._saved)
        except BaseException:
            self._journal.write(Note(self._directory, self._name))  # it has undone what it did
            raise

    def _end(self) -> None:
        self._is_over = True
        try:
            if self._has_staging:
                remove_tree(self._name, dir_fd=self._anchor)
        except FileNotFoundError:
            pass
        finally:
            self._journal.drop(self._name)
            self._close()

    def _close(self) -> None:
        while self._open:
            os.close(self._open.pop())
