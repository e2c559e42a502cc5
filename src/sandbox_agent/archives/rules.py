"""Names of files as text: how long one may be, and how an error shows it."""

from __future__ import annotations

MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255

Parts = tuple[str, ...]


def clip(path: str) -> str:
    """The path as an error shows it."""
    return ascii(path) if len(path) <= 200 else f"{path[:200]!a}…"
