"""Helps the fuzzer get past the first check: archives, and paths that lie where files may be touched."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

_NAMES = ("", "a", "b/c", "a/../a", "ü", "..", "a\0b")


@schemathesis.serializer("application/x-tar", "application/gzip", "application/x-gtar", "application/x-tar+gzip")
def as_bytes(_: Any, value: Any) -> bytes:
    raw = getattr(value, "data", value)
    return raw if isinstance(raw, bytes) else str(raw).encode()


@schemathesis.hook
def map_query(_: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
    """Most paths are brought into the root; a few stay as they were drawn."""
    if not query or not isinstance(query.get("path"), str):
        return query
    drawn = len(query["path"])
    if drawn % 4 == 3:
        return query
    kept = {name: value for name, value in query.items() if name != "sessionId" or drawn % 8 == 5}
    return {**kept, "path": f"{os.environ['FUZZ_ROOT']}/{_NAMES[drawn % len(_NAMES)]}"}
