"""How much one archive may hold."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Bounds of unpacking; the defaults fit a large project."""

    max_archive_bytes: int = 16 * GIB
    """An archive as it arrives, and again after decompression."""
    max_archive_entries: int = 100_000
    """Every header counts, and every directory that a name implies."""
    max_member_bytes: int = 8 * GIB
    max_archive_depth: int = 64
    max_gzip_ratio: int = 200
    """Applies once `gzip_ratio_after` bytes came out, so that short runs of zeros pass."""
    gzip_ratio_after: int = 16 * MIB
