"""Lets a program wait for one who wants all of its output, where the log would have to drop what they have not got."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sandbox_agent.process import LogReader, OutputLog

GRACE = 30.0
"""Seconds for which the place of such a reader is kept: until it comes for the first time, or back."""


class Hold:
    """`pause` and `resume` stop the program's output and let it go on."""

    def __init__(self, log: OutputLog, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._log = log
        self._pause = pause
        self._resume = resume
        self._readers: set[LogReader] = set()
        self._kept: int | None = None
        """The place of one who has not come yet, or has gone just now."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False

    def keep(self, position: int) -> None:
        """Hold what follows `position` for a while, for one who comes to read it."""
        self._forget()
        self._kept = position
        self._timer = asyncio.get_running_loop().call_later(GRACE, self._give_up)

    @contextmanager
    def reading(self, reader: LogReader) -> Iterator[None]:
        self._forget()
        self._readers.add(reader)
        self.check()
        try:
            yield
        finally:
            self._readers.discard(reader)
            if not self._log.is_ended:
                self.keep(reader.position)

    def check(self) -> None:
        """To be called when the log has grown or a reader has got on."""
        places = [reader.position for reader in self._readers]
        if self._kept is not None:
            places.append(self._kept)
        is_full = bool(places) and self._log.would_lose(min(places))
        if is_full and not self._is_paused:
            self._is_paused = True
            self._pause()
        elif self._is_paused and not is_full:
            self._is_paused = False
            self._resume()

    def _forget(self) -> None:
        self._kept = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._forget()
        self.check()
