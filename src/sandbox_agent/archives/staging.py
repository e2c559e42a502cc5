"""The directory in which an archive is unpacked before anything of it is seen under its name."""

from __future__ import annotations

import os
from collections import OrderedDict

from sandbox_agent.archives.rules import ArchiveLimits, Parts, clip, too_many
from sandbox_agent.archives.tar import Kind, Member
from sandbox_agent.errors import BadArchive

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_HELD = 64


class Staging:
    """The sink that a TarReader fills. Everything is created anew beneath `fd`, and no link is ever followed.

    Symbolic links are made last, by `make_links`: while files are written there is none to write through.
    """

    def __init__(self, fd: int, limits: ArchiveLimits) -> None:
        self._fd = fd
        self._limits = limits
        self._kinds: dict[Parts, Kind] = {(): Kind.DIRECTORY}
        self._links: list[tuple[Parts, str]] = []
        self._held: OrderedDict[Parts, int] = OrderedDict()
        self._file = -1
        self._mtime_ns = 0
        self.names: list[Parts] = []
        """Every entry in the archive's order; directories that names only imply are not among them."""

    def begin(self, member: Member) -> None:
        known = self._kinds.get(member.parts)
        if known is not None:
            if known is Kind.DIRECTORY and member.kind is Kind.DIRECTORY:
                return
            raise BadArchive(f"the archive has {clip(member.name)} twice")
        self._add(member.parts, member.kind)
        self.names.append(member.parts)
        if member.kind is Kind.SYMLINK:
            self._parent(member.parts)
            self._links.append((member.parts, member.link))
            return
        try:
            self._create(member)
        except FileExistsError:  # names that differ here, but not on this file system
            raise BadArchive(f"the archive has {clip(member.name)} twice") from None

    def write(self, content: memoryview) -> None:
        while content:
            content = content[os.write(self._file, content) :]

    def end(self) -> None:
        if self._file >= 0:
            fd, self._file = self._file, -1
            try:
                os.utime(fd, ns=(self._mtime_ns, self._mtime_ns))
            finally:
                os.close(fd)

    def make_links(self) -> None:
        for parts, target in self._links:
            os.symlink(target, parts[-1], dir_fd=self._parent(parts))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        while self._held:
            os.close(self._held.popitem()[1])

    def _create(self, member: Member) -> None:
        parent = self._parent(member.parts)
        name = member.parts[-1]
        if member.kind is Kind.DIRECTORY:
            os.mkdir(name, member.mode | 0o700, dir_fd=parent)
        elif member.kind is Kind.FILE:
            self._file = os.open(name, _CREATE, member.mode or 0o644, dir_fd=parent)
            self._mtime_ns = member.mtime_ns
        else:
            self._link_file(member, parent)

    def _link_file(self, member: Member, parent: int) -> None:
        source = tuple(member.link.split("/"))
        if self._kinds.get(source) is not Kind.FILE:
            raise BadArchive(f"the hard link {clip(member.name)} names no earlier file: {clip(member.link)}")
        self._kinds[member.parts] = Kind.FILE
        held = os.dup(parent)  # looking for the other directory may let go of this one
        try:
            other = self._parent(source)
            os.link(source[-1], member.parts[-1], src_dir_fd=other, dst_dir_fd=held, follow_symlinks=False)
        finally:
            os.close(held)

    def _add(self, parts: Parts, kind: Kind) -> None:
        self._kinds[parts] = kind
        if len(self._kinds) > self._limits.max_archive_entries + 1:
            raise too_many(self._limits)

    def _parent(self, parts: Parts) -> int:
        return self._directory(parts[:-1])

    def _directory(self, place: Parts) -> int:
        """The directory `place`, open, and made if only implied. To be used before the next is asked for."""
        if not place:
            return self._fd
        fd = self._held.get(place)
        if fd is not None:
            self._held.move_to_end(place)
            return fd
        above = self._directory(place[:-1])
        kind = self._kinds.get(place)
        if kind is None:
            self._add(place, Kind.DIRECTORY)
            os.mkdir(place[-1], dir_fd=above)
        elif kind is not Kind.DIRECTORY:
            raise BadArchive(f"the archive writes through {clip('/'.join(place))}, which is a {kind.value}")
        fd = self._held[place] = os.open(place[-1], _DIRECTORY, dir_fd=above)
        if len(self._held) > _MAX_HELD:
            os.close(self._held.popitem(last=False)[1])
        return fd
