"""Unpack the archive of an install, tar or zip, into a directory of its own.

The standard library reads the compression and the zip directory only: its own extraction has been bypassed before.
Every name and link passes the rule that uploads pass, and what writes is the staging that uploads use.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import time
import zipfile
import zlib
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from sandbox_agent.archives.rules import GIB, MAX_PATH_BYTES, MIB, ArchiveLimits, check_symlink, checked_name, clip
from sandbox_agent.archives.staging import Staging
from sandbox_agent.archives.tar import Kind, Member, TarReader
from sandbox_agent.errors import BadArchive, InstallError, TooLarge

MAX_ENTRIES = 200_000
MAX_BYTES = 4 * GIB
_TAR_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar")
_DAMAGED = (BadArchive, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)


def unpack(archive: Path, name: str, target: Path, command: str, *, max_bytes: int = MAX_BYTES) -> None:
    """Unpack `archive`, whose published file name is `name`, into `target`. A bare program becomes `command`.

    Raises InstallError at the first entry that is not harmless; the caller throws `target` away.
    """
    limits = ArchiveLimits(
        max_archive_bytes=max_bytes,
        max_archive_entries=MAX_ENTRIES,
        max_member_bytes=max_bytes,
        max_archive_depth=64,
        max_gzip_ratio=200,
        gzip_ratio_after=16 * MIB,
        refuse_backslash=True,
    )
    target.mkdir()
    fd = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    staging = Staging(fd, limits)
    try:
        if name.endswith(_TAR_SUFFIXES):
            _unpack_tar(archive, staging, limits)
        elif name.endswith(".zip"):
            _unpack_zip(archive, staging, limits)
        else:
            with archive.open("rb") as source:
                _Copy(staging, limits).file(command, 0o755, source)
        staging.make_links()
    except TooLarge as error:
        raise InstallError(f"{name} unpacks to too many bytes or entries: {error}") from error
    except _DAMAGED as error:
        raise InstallError(f"{name} is not a good archive: {error}") from error
    except (NotImplementedError, RuntimeError) as error:  # zipfile: unknown compression, encrypted
        raise InstallError(f"{name} cannot be unpacked: {error}") from error
    finally:
        staging.close()
        os.close(fd)


def _unpack_tar(archive: Path, staging: Staging, limits: ArchiveLimits) -> None:
    reader = TarReader(staging, limits)
    with _decompressed(archive) as source:
        while chunk := source.read(MIB):
            reader.feed(chunk)
    reader.finish()


def _decompressed(archive: Path) -> BufferedIOBase:
    """By what the file begins with: names lie."""
    with archive.open("rb") as file:
        head = file.read(6)
    if head.startswith(b"\x1f\x8b"):
        return gzip.open(archive)
    if head.startswith(b"BZh"):
        return bz2.open(archive)
    return lzma.open(archive) if head.startswith(b"\xfd7zXZ") else archive.open("rb")


def _unpack_zip(archive: Path, staging: Staging, limits: ArchiveLimits) -> None:
    copy = _Copy(staging, limits)
    with zipfile.ZipFile(archive) as bundle:
        for item in bundle.infolist():
            mode = item.external_attr >> 16
            if item.is_dir():
                copy.empty(item.filename, Kind.DIRECTORY, 0o755)
            elif stat.S_ISLNK(mode):
                if item.file_size > MAX_PATH_BYTES:
                    raise BadArchive(f"the link {clip(item.filename)} is over-long")
                copy.empty(item.filename, Kind.SYMLINK, 0, bundle.read(item).decode())
            elif stat.S_IFMT(mode) in {0, stat.S_IFREG}:
                with bundle.open(item) as source:
                    copy.file(item.filename, 0o755 if mode & 0o111 else 0o644, source)
            else:
                raise BadArchive(f"{clip(item.filename)} is a device, a pipe or worse")


class _Copy:
    """Puts entries into a staging by the rule, and counts what it puts there."""

    def __init__(self, staging: Staging, limits: ArchiveLimits) -> None:
        self._staging = staging
        self._limits = limits
        self._bytes = 0

    def file(self, name: str, mode: int, source: IO[bytes]) -> None:
        self._begin(name, Kind.FILE, mode, "")
        while chunk := source.read(MIB):
            self._bytes += len(chunk)
            if self._bytes > self._limits.max_archive_bytes:
                raise TooLarge(f"the archive holds more than {self._limits.max_archive_bytes} bytes")
            self._staging.write(memoryview(chunk))
        self._staging.end()

    def empty(self, name: str, kind: Kind, mode: int, link: str = "") -> None:
        self._begin(name, kind, mode, link)
        self._staging.end()

    def _begin(self, name: str, kind: Kind, mode: int, link: str) -> None:
        parts = checked_name(name, self._limits)
        if kind is Kind.SYMLINK:
            check_symlink(name, parts, link)
        if not parts and kind is not Kind.DIRECTORY:
            raise BadArchive(f"{clip(name)} does not name anything in the archive")
        self._staging.begin(Member(name, parts, kind, 0, mode, time.time_ns(), link))
