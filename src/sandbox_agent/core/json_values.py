"""JSON values from elsewhere, read without trusting their shape."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from sandbox_agent.core.frames import META, mended

T = TypeVar("T")
Object = dict[str, Any]


def read_json(line: bytes, type_: type[T] | Any = Any) -> Any:
    """Decode JSON; None if it cannot be. Half surrogate pairs, as agents split them, become U+FFFD."""
    try:
        return msgspec.json.decode(line, type=type_)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.json.decode(mended(line), type=type_)
    except (ValueError, RecursionError):
        return None


def as_object(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Strings as they are, nothing as "", anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON for people to read; a value nested too deep to write is cut off as `…`."""
    separators = (",", ":") if indent is None else None
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    except RecursionError:
        return "…"


def meta_value(holder: Object, name: str) -> Any:
    """A product value under `_meta`, in the current or the older spelling; None if absent."""
    meta = as_object(holder.get("_meta"))
    if not meta:
        return None
    value = as_object(meta.get(META)).get(name)
    return meta.get(f"sandbox-agent/{name}") if value is None else value


def iso_time(seconds: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
