"""What is remembered of things that a peer names: only the newest, and only under names of a sane length."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")
MAX_NAME = 256


class Recent(Generic[T]):
    """Values by name. The oldest goes when there are more than `limit`; longer names than MAX_NAME are never known."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[str, T] = {}

    def get(self, name: Any) -> T | None:
        return self._values.get(name) if isinstance(name, str) else None

    def put(self, name: Any, value: T) -> bool:
        """Whether the name is new (or not one that can be remembered)."""
        if not isinstance(name, str) or len(name) > MAX_NAME:
            return True
        is_new = name not in self._values
        self._values[name] = value
        if len(self._values) > self._limit:
            del self._values[next(iter(self._values))]
        return is_new

    def values(self) -> list[tuple[str, T]]:
        return list(self._values.items())


def weight(value: Any) -> int:
    """About how much memory a JSON value takes: its text, and something for each thing in it."""
    text = msgspec.json.encode(value)
    return len(text) + 16 * (text.count(b",") + text.count(b"{") + text.count(b"["))
