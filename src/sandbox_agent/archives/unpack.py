"""Unpack an archive so that nothing lands outside its directory, whatever the archive says.

Written out by hand because the standard library's filters have been bypassed: every parent is checked not to be a
link, files are created exclusively, links may only point inside, and everything is counted.
"""

from __future__ import annotations

import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from sandbox_agent.errors import InstallError

MAX_ENTRIES = 200_000
MAX_BYTES = 4 * 1024**3
_TAR_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar")


def unpack(archive: Path, name: str, target: Path, command: str, *, max_bytes: int = MAX_BYTES) -> None:
    """Unpack `archive`, whose published file name is `name`, into `target`. A bare program becomes `command`.

    Raises InstallError at the first entry that is not harmless; the caller throws `target` away.
    """
    target.mkdir()
    box = _Box(target, max_bytes)
    try:
        if name.endswith(_TAR_SUFFIXES):
            with tarfile.open(archive, "r:*") as tar:
                _unpack_tar(tar, box)
        elif name.endswith(".zip"):
            with zipfile.ZipFile(archive) as bundle:
                _unpack_zip(bundle, box)
        else:
            with archive.open("rb") as source:
                box.write(command, source, 0o755)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        OSError,
        ValueError,
    ) as error:
        raise InstallError(f"{name} is not a good archive: {error}") from error
    except (NotImplementedError, RuntimeError) as error:  # zipfile: unknown compression, encrypted
        raise InstallError(f"{name} cannot be unpacked: {error}") from error


class _Box:
    """A directory that entries are put into, and the counts that bound it."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root = root
        self._bytes_left = max_bytes
        self._entries_left = MAX_ENTRIES

    def place(self, name: str) -> Path:
        """The path for an entry, its parents made and known to be real directories."""
        self._entries_left -= 1
        if self._entries_left < 0:
            raise InstallError(f"the archive has more than {MAX_ENTRIES} entries")
        parts = _parts(name)
        here = self._root
        for part in parts[:-1]:
            here = here / part
            here.mkdir(exist_ok=True)
            if here.is_symlink():
                raise InstallError(f"the archive writes through a link: {name!r}")
        return here / parts[-1] if parts else self._root

    def mkdir(self, name: str) -> None:
        path = self.place(name)
        if path.is_symlink():
            raise InstallError(f"the archive puts a directory over a link: {name!r}")
        path.mkdir(exist_ok=True)

    def write(self, name: str, source: IO[bytes], mode: int) -> None:
        path = self.place(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            while chunk := source.read(1024 * 1024):
                self._bytes_left -= len(chunk)
                if self._bytes_left < 0:
                    raise InstallError("the archive unpacks to too many bytes")
                file.write(chunk)
        path.chmod(0o755 if mode & 0o111 else 0o644)

    def link(self, name: str, to: str) -> None:
        path = self.place(name)
        if to.startswith("/") or "\0" in to:
            raise InstallError(f"the archive links out: {name!r} to {to!r}")
        steps = PurePosixPath(to).parts
        ups = next((count for count, step in enumerate(steps) if step != ".."), len(steps))
        # ".." further in could climb out of a directory that is itself a link
        if ups > len(_parts(name)) - 1 or ".." in steps[ups:]:
            raise InstallError(f"the archive links out: {name!r} to {to!r}")
        path.symlink_to(to)

    def copy(self, name: str, of: str) -> None:
        source = self.place(of)
        if not stat.S_ISREG(source.lstat().st_mode):
            raise InstallError(f"the archive hard-links something that is no file: {of!r}")
        self._bytes_left -= source.stat().st_size
        if self._bytes_left < 0:
            raise InstallError("the archive unpacks to too many bytes")
        path = self.place(name)
        if os.path.lexists(path):
            raise InstallError(f"the archive names {name!r} twice")
        shutil.copy2(source, path)


def _unpack_tar(tar: tarfile.TarFile, box: _Box) -> None:
    for member in tar:
        if member.isdir():
            box.mkdir(member.name)
        elif member.isreg():
            source = tar.extractfile(member)
            assert source is not None  # noqa: S101 - extractfile answers None for non-files only
            box.write(member.name, source, member.mode)
        elif member.issym():
            box.link(member.name, member.linkname)
        elif member.islnk():
            box.copy(member.name, member.linkname)
        else:
            raise InstallError(f"the archive holds a device, a pipe or worse: {member.name!r}")


def _unpack_zip(bundle: zipfile.ZipFile, box: _Box) -> None:
    for item in bundle.infolist():
        mode = item.external_attr >> 16
        if item.is_dir():
            box.mkdir(item.filename)
        elif stat.S_ISLNK(mode):
            if item.file_size > 4096:
                raise InstallError(f"the archive holds an over-long link: {item.filename!r}")
            box.link(item.filename, bundle.read(item).decode("utf-8"))
        elif stat.S_IFMT(mode) in {0, stat.S_IFREG}:
            with bundle.open(item) as source:
                box.write(item.filename, source, mode)
        else:
            raise InstallError(f"the archive holds a device, a pipe or worse: {item.filename!r}")


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or "\\" in name:
        raise InstallError(f"the archive writes outside: {name!r}")
    return path.parts
