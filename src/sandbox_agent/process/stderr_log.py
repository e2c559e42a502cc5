"""What an agent process wrote to stderr: the first and the last lines, and how many there were."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import msgspec

from sandbox_agent.core.lines import LineSplitter, OversizedLine

_KEPT = 50
_LONGEST = 2000
_READ_ON = 8192
"""Bytes of a line behind where it is cut that are looked at, so that a secret across the cut is known as one."""
_BURST = 1 << 18
_PER_SECOND = 1 << 13
"""Bytes of stderr that may be told at once, and further ones for each second: a log has a disk to share."""
_FRAME = 80
"""What the log puts around a line."""

Clean = Callable[[str, int], str]
"""Gives the first so many characters of a text, without the secrets in it."""


class StderrSummary(msgspec.Struct, frozen=True, rename="camel"):
    head: list[str]
    tail: list[str]
    truncated: bool
    total_lines: int


class StderrLog:
    """Keeps `kept` lines from either end. Lines go to `on_line` as they come; of a flood only so much, and a count."""

    def __init__(
        self,
        on_line: Callable[[str], None],
        *,
        kept: int = _KEPT,
        clean: Clean = lambda text, limit: text[:limit],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_line = on_line
        self._kept = kept
        self._clean = clean
        self._clock = clock
        self._lines = LineSplitter(cap=1 << 20)
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque(maxlen=kept)
        self._total = 0
        self._allowance: float = _BURST
        self._counted_at = clock()
        self._untold = 0

    def feed(self, chunk: bytes) -> None:
        now = self._clock()
        self._allowance = min(_BURST, self._allowance + (now - self._counted_at) * _PER_SECOND)
        self._counted_at = now
        for line in self._lines.feed(chunk):
            self._add(line)

    def finish(self) -> None:
        for line in self._lines.finish():
            self._add(line)
        self._tell_untold()

    def summary(self) -> StderrSummary:
        """`tail` holds only lines that `head` does not."""
        head, tail = ([self._text(line) for line in lines] for lines in (self._head, self._tail))
        return StderrSummary(head, tail, self._total > 2 * self._kept, self._total)

    def _add(self, line: bytes | OversizedLine) -> None:
        """Kept as it came: most lines of a flood are never looked at."""
        if isinstance(line, OversizedLine):
            line = b"[a line of %d bytes was dropped]" % line.size
        line = line[: _LONGEST + _READ_ON]
        self._total += 1
        if len(self._head) < self._kept:
            self._head.append(line)
        else:
            self._tail.append(line)
        cost = min(len(line), _LONGEST) + _FRAME
        if self._allowance < (_PER_SECOND if self._untold else cost):
            self._untold += 1
            return
        self._allowance -= cost
        self._tell_untold()
        self._on_line(self._text(line))

    def _tell_untold(self) -> None:
        if self._untold:
            self._on_line(f"[{self._untold} lines were left out: too many at once]")
            self._untold = 0

    def _text(self, line: bytes) -> str:
        return _printable(self._clean(line.decode(errors="replace"), _LONGEST))


def _printable(text: str) -> str:
    """`text` without control characters, so that a log line stays one line and colours stay ours."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
