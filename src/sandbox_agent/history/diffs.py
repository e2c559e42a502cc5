"""Unified diffs of two texts, at a bounded cost."""

from __future__ import annotations

from itertools import chain

COMPARED_LINES = 2000
"""Above this many lines on both sides together, the change is shown whole instead of being searched for."""


def unified_diff(path: str, old: str | None, new: str) -> str:
    """A diff in unified form; without `old`, a new file. Empty when nothing changed."""
    if old == new:
        return ""
    before, after = _lines(old or ""), _lines(new)
    name = " ".join(path.split())
    origin = "/dev/null" if old is None else name
    if len(before) + len(after) > COMPARED_LINES:
        return "\n".join(_whole(origin, name, before, after))
    from difflib import unified_diff as compare  # noqa: PLC0415 - a server starts without it

    return "\n".join(compare(before, after, origin, name, lineterm=""))


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _whole(origin: str, name: str, before: list[str], after: list[str]) -> chain[str]:
    head = [f"--- {origin}", f"+++ {name}", f"@@ -1,{len(before)} +1,{len(after)} @@"]
    return chain(head, (f"-{line}" for line in before), (f"+{line}" for line in after))
