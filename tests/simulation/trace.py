"""What happened, in order: the same seed gives the same trace, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable


class Trace:
    def __init__(self) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self.is_closed = False
        """What is said from now on does not count."""
        self.home = ""
        """Where the files are: that is another place each time, and not said."""
        self._moments: list[tuple[float, str, str, tuple[bytes, ...]]] = []

    def add(self, who: str, what: str, *lines: bytes) -> None:
        if not self.is_closed:
            self._moments.append((self.clock(), who, what, lines))

    @property
    def text(self) -> str:
        """One line for each moment, the messages indented below it."""
        text = "".join(
            f"{at:.6f} {who} {what}\n" + "".join(f"    {line.decode(errors='replace')}\n" for line in lines)
            for at, who, what, lines in self._moments
        )
        return text.replace(self.home, "HOME") if self.home else text

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()
