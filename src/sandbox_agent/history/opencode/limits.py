"""How much one part of a message may hold. What is longer is cut, and says so; the history has all of it."""

from __future__ import annotations

from typing import Any

TEXT_CHARS = 1 << 20
"""A text or a thought that grows longer goes on in a part of its own."""
OUTPUT_CHARS = 50_000
INPUT_CHARS = 20_000
PATCH_CHARS = 200_000
TOOLS = 256
"""Tool calls of a turn that can still change; past it the oldest stays as it is."""
_DEPTH = 8


def cut(text: str, limit: int) -> str:
    """The head and the tail of a text that is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def cut_values(value: Any, limit: int = INPUT_CHARS, depth: int = _DEPTH) -> Any:
    """The same for all texts within a JSON value; what is nested too deep is left out."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, dict):
        return {name: cut_values(inner, limit, depth - 1) for name, inner in value.items()} if depth else {}
    if isinstance(value, list):
        return [cut_values(inner, limit, depth - 1) for inner in value[:1000]] if depth else []
    return value
