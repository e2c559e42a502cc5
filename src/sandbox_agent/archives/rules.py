"""What an archive may hold: how much, under which names, and which links. One rule for uploads and installs."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox_agent.errors import BadArchive, TooLarge

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """Bounds of unpacking."""

    max_archive_bytes: int
    """An archive as it arrives, and again after decompression."""
    max_archive_entries: int
    """Every header counts, and every directory that a name implies."""
    max_member_bytes: int
    max_archive_depth: int
    max_gzip_ratio: int
    """Applies once `gzip_ratio_after` bytes came out, so that short runs of zeros pass."""
    gzip_ratio_after: int
    refuse_backslash: bool
    """Whether a name with a backslash, a path on other systems, is refused."""


def checked_name(name: str, limits: ArchiveLimits) -> Parts:
    """The components of an entry's name. Raises BadArchive unless they stay within the archive's tree."""
    if not name or "\0" in name:
        raise BadArchive(f"an entry's name is {'empty' if not name else clip(name) + ', with a NUL character'}")
    if name.startswith("/"):
        raise BadArchive(f"the entry name {clip(name)} is absolute")
    parts = tuple(name.split("/"))
    if "" in parts or "." in parts:
        parts = tuple(part for part in parts if part not in ("", "."))
    if ".." in parts or (limits.refuse_backslash and "\\" in name):
        raise BadArchive(f"the entry name {clip(name)} leads out of the archive's tree")
    if len(parts) > limits.max_archive_depth:
        raise BadArchive(f"the entry name {clip(name)} is nested deeper than {limits.max_archive_depth} levels")
    if len(name) * 4 > MAX_NAME_BYTES and (
        len(name.encode()) > MAX_PATH_BYTES or any(len(part.encode()) > MAX_NAME_BYTES for part in parts)
    ):
        raise BadArchive(f"the entry name {clip(name)} is too long")
    return parts


def check_symlink(name: str, parts: Parts, link: str) -> None:
    """Allow only links that cannot lead out, whatever other links they pass.

    `..` is counted at the front alone, where it climbs real directories; behind a name it would climb from
    wherever a link of that name leads, and text cannot tell where that is.
    """
    if not link or "\0" in link or len(link.encode()) > MAX_PATH_BYTES:
        raise BadArchive(f"the link {clip(name)} has a target that no link can have: {clip(link)}")
    steps = [step for step in link.split("/") if step not in ("", ".")]
    climbs = next((count for count, step in enumerate(steps) if step != ".."), len(steps))
    if link.startswith("/") or climbs > len(parts) - 1 or ".." in steps[climbs:]:
        raise BadArchive(f"the link {clip(name)} leads out of the archive's tree, or may: {clip(link)}")


def too_many(limits: ArchiveLimits) -> TooLarge:
    return TooLarge(f"the archive has more than {limits.max_archive_entries} entries", limit=limits.max_archive_entries)


def clip(path: str) -> str:
    """The path as an error shows it."""
    return ascii(path) if len(path) <= 200 else f"{path[:200]!a}…"
