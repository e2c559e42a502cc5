"""The shortest history found that breaks the same promise: what does not matter is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def shrink(steps: Sequence[int], breaks: Callable[[Sequence[int]], bool], *, tries: int) -> list[int]:
    """Leave out ever smaller parts while it still `breaks`; at most so many tries."""
    kept = list(steps)
    size = len(kept) // 2
    while size and tries > 0:
        start = 0
        has_shrunk = False
        while start < len(kept) and tries > 0:
            fewer = kept[:start] + kept[start + size :]
            tries -= 1
            if breaks(fewer):
                kept, has_shrunk = fewer, True
            else:
                start += size
        if size > 1 or not has_shrunk:
            size //= 2
    return kept
