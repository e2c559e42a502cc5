"""How much one archive may hold."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


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
