"""How much one request may ask of the disk."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox_agent.archives.limits import ArchiveLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits(ArchiveLimits):
    """Bounds of the file service."""

    max_file_bytes: int | None
    """A written file; None: as much as the disk holds."""
    max_inline_bytes: int
    """A file that passes through memory as one value (`read_bytes`, `write_bytes`)."""
    max_listed: int
    stall_seconds: float
    """How long an upload may send nothing."""
    max_operations: int
    max_streams: int
    """Open reads and uploads at once, counted apart from short operations."""
    workers: int
