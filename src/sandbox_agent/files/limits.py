"""How much one request may ask of the disk."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox_agent.archives.rules import MIB, ArchiveLimits


@dataclass(frozen=True, slots=True)
class FileLimits(ArchiveLimits):
    """Bounds of the file service; the defaults fit a sandbox with a large project in it."""

    max_file_bytes: int | None = None
    """A written file; None: as much as the disk holds."""
    max_inline_bytes: int = 16 * MIB
    """A file that passes through memory as one value (`read_bytes`, `write_bytes`)."""
    max_listed: int = 100_000
    stall_seconds: float = 60.0
    """How long an upload may send nothing."""
    max_operations: int = 256
    max_streams: int = 128
    """Open reads and uploads at once, counted apart from short operations."""
    workers: int = 4
