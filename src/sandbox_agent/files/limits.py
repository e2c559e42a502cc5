"""How much one request may ask of the disk."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Bounds of the file service; the defaults fit a sandbox with a large project in it."""

    max_file_bytes: int | None = None
    """A written file; None: as much as the disk holds."""
    max_inline_bytes: int = 16 * MIB
    """A file that passes through memory as one value (`read_bytes`, `write_bytes`)."""
    max_listed: int = 100_000
    max_archive_bytes: int = 16 * GIB
    """An archive as it arrives, and again after decompression."""
    max_archive_entries: int = 100_000
    """Every header counts, and every directory that a name implies."""
    max_member_bytes: int = 8 * GIB
    max_archive_depth: int = 64
    max_gzip_ratio: int = 200
    """Applies once `gzip_ratio_after` bytes came out, so that short runs of zeros pass."""
    gzip_ratio_after: int = 16 * MIB
    stall_seconds: float = 60.0
    """How long an upload may send nothing."""
    max_operations: int = 256
    max_streams: int = 128
    """Open reads and uploads at once, counted apart from short operations."""
    workers: int = 4
