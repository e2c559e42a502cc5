"""Notes of uploads under way, kept with the server's data, so that the next start mends what a kill left half done."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sandbox_agent.errors import NotFound, SandboxAgentError
from sandbox_agent.files.failures import explained
from sandbox_agent.files.merge import merge
from sandbox_agent.files.paths import Roots
from sandbox_agent.files.trees import remove
from sandbox_agent.files.walk import READ_DIRECTORY, locate
from sandbox_agent.process import table

_log = logging.getLogger(__name__)
_FOLDER = "uploads"
TREE = "tree"
SAVED = "saved"


class Note(msgspec.Struct, frozen=True):
    """What an upload has put where: `name` in `directory`. `target` while its tree is being merged into that."""

    directory: str
    name: str
    target: str | None = None


class UploadJournal:
    """One folder of notes for each server on the same data. Without `data_dir` nothing is noted."""

    def __init__(self, data_dir: Path | None) -> None:
        self._folder = data_dir / _FOLDER if data_dir is not None else None
        self._own = self._folder / table.own_name() if self._folder is not None else None
        self._has_warned = False

    def write(self, note: Note) -> None:
        """Note it, or note it anew. A disk that cannot take it costs the note, never the upload."""
        if self._own is None:
            return
        try:
            self._own.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self._own / f"{note.name}.new"
            fresh.write_bytes(msgspec.json.encode(note))
            fresh.replace(self._own / note.name)
        except OSError as error:
            if not self._has_warned:
                _log.warning("uploads cannot be noted under %s: %s", self._folder, error)
            self._has_warned = True

    def drop(self, name: str) -> None:
        if self._own is not None:
            with contextlib.suppress(OSError):
                (self._own / name).unlink()

    def close(self) -> None:
        if self._own is not None:
            with contextlib.suppress(OSError):
                self._own.rmdir()

    def mend(self, roots: Roots) -> None:
        """Remove what uploads of servers that are gone have left, and finish merges that they had begun."""
        for folder in self._abandoned():
            for path in list(folder.iterdir()):
                if _mend_one(roots, path):
                    path.unlink()
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _abandoned(self) -> Iterator[Path]:
        if self._folder is not None and self._folder.is_dir():
            yield from (run for run in list(self._folder.iterdir()) if not table.is_alive(run.name))


def _mend_one(roots: Roots, path: Path) -> bool:
    """Whether the note is done with; one that cannot be acted on now is kept for the next start."""
    try:
        note = msgspec.json.decode(path.read_bytes(), type=Note)
    except msgspec.DecodeError:
        return True  # cut off while it was written: nothing was begun on the strength of it
    place = f"{note.directory.rstrip('/')}/{note.name}"
    try:
        with explained(place), locate(roots, place, follow=False) as spot:
            if note.target is not None:
                _finish_merge(roots, spot.name, spot.fd, note.target)
            remove(spot.name, dir_fd=spot.fd)
    except NotFound:
        return True
    except SandboxAgentError as error:
        _log.warning("an upload that was cut short is not mended yet path=%r problem=%s", place, error)
        return False
    _log.info("an upload that was cut short is mended path=%r", place)
    return True


def _finish_merge(roots: Roots, name: str, dir_fd: int, target: str) -> None:
    """All that was uploaded lies in the tree, or in its place by now: move the rest. What is replaced is not needed."""
    with contextlib.ExitStack() as held:

        def hold(name: str, dir_fd: int) -> int:
            fd = os.open(name, READ_DIRECTORY, dir_fd=dir_fd)
            held.callback(os.close, fd)
            return fd

        root = hold(name, dir_fd)
        remove(SAVED, dir_fd=root)
        os.mkdir(SAVED, 0o700, dir_fd=root)
        spot = held.enter_context(locate(roots, target))
        merge(hold(TREE, root), hold(spot.name, spot.fd), hold(SAVED, root))
