"""What an agent process wrote to stderr: the first and the last lines, and how many there were."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from sandbox_agent.core.lines import LineSplitter, OversizedLine

_KEPT = 50
_LONGEST = 2000


class StderrSummary(msgspec.Struct, frozen=True, rename="camel"):
    head: list[str]
    tail: list[str]
    truncated: bool
    total_lines: int


class StderrLog:
    """Keeps `kept` lines from either end; every line goes to `on_line` as it comes."""

    def __init__(self, on_line: Callable[[str], None], *, kept: int = _KEPT) -> None:
        self._on_line = on_line
        self._kept = kept
        self._lines = LineSplitter(cap=1 << 20)
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=kept)
        self._total = 0

    def feed(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            self._add(line)

    def finish(self) -> None:
        for line in self._lines.finish():
            self._add(line)

    def summary(self) -> StderrSummary:
        """`tail` holds only lines that `head` does not."""
        return StderrSummary(list(self._head), list(self._tail), self._total > 2 * self._kept, self._total)

    def _add(self, line: bytes | OversizedLine) -> None:
        if isinstance(line, OversizedLine):
            text = f"[a line of {line.size} bytes was dropped]"
        else:
            text = _printable(line[:_LONGEST].decode(errors="replace"))
        self._total += 1
        if len(self._head) < self._kept:
            self._head.append(text)
        else:
            self._tail.append(text)
        self._on_line(text)


def _printable(text: str) -> str:
    """`text` without control characters, so that a log line stays one line and colours stay ours."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
