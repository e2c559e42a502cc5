"""What a terminal has printed as text with a cursor, as OpenCode's clients count it: in UTF-16 units from its start."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from sandbox_agent.process import LogReader, OutputLog

_APART = 1 << 15
"""Units between two marks: what has to be read again, at most, to find a cursor."""


class Mark(NamedTuple):
    """After the entry `sequence` of the log, `units` have been printed, and no character is cut in two."""

    sequence: int
    units: int


class TerminalText:
    """Where in a log which cursor is, as far as it has been read. Readers leave marks for those who come later."""

    def __init__(self, log: OutputLog) -> None:
        self.log = log
        self._marks = [Mark(log.first - 1, 0)]

    @property
    def newest(self) -> Mark:
        return self._marks[-1]

    def before(self, units: int) -> Mark:
        """The last mark that is not after the cursor and whose text is still there."""
        kept = [mark for mark in self._marks if mark.sequence >= self.log.first - 1] or [self.newest]
        self._marks = kept
        return next((mark for mark in reversed(kept) if mark.units <= units), kept[0])

    def note(self, mark: Mark) -> None:
        if mark.sequence > self.newest.sequence and mark.units - self.newest.units >= _APART:
            self._marks.append(mark)


class TerminalReader:
    """Reads on from a mark. `units` is the cursor after what was taken."""

    def __init__(self, text: TerminalText, mark: Mark) -> None:
        self.units = mark.units
        self._text = text
        self._reader: LogReader = text.log.read_from(mark.sequence)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def position(self) -> int:
        return self._reader.position

    @property
    def is_over(self) -> bool:
        return self._reader.is_over

    async def take(self, *, wait: float = 0.0) -> str:
        """What follows, waiting up to `wait` seconds for it. What the log has lost is passed over."""
        piece = await self._reader.take(wait=wait)
        if piece.cut is not None:
            self._decoder.reset()
        said: list[str] = []
        for entry in piece.entries:
            text = self._decoder.decode(entry.content)
            self.units += units_of(text)
            said.append(text)
            if not self._decoder.getstate()[0]:
                self._text.note(Mark(entry.sequence, self.units))
        return "".join(said)


def units_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def without_first(text: str, units: int) -> str:
    """The text after so many units."""
    return text[units:] if text.isascii() else text.encode("utf-16-le")[2 * units :].decode("utf-16-le", "replace")
