"""Work beside the event loop: in a thread of its own. A simulation takes the same steps on its own clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple


class Rest(NamedTuple):
    """No step before the event is set, or so many seconds have passed."""

    until: threading.Event
    seconds: float


Steps = Iterator[Rest | None]
"""Work that rests where it yields. None is no rest, but a moment at which others may come in between."""


class Worker:
    """A thread that takes steps until there are no more."""

    def __init__(self, name: str, steps: Steps) -> None:
        self._steps = steps
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, timeout: float) -> bool:
        """Wait for the last step; say whether it came in time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        for rest in self._steps:
            if rest is not None:
                rest.until.wait(rest.seconds)


class Background:
    """Makes workers, and the events that they wait for."""

    def event(self) -> threading.Event:
        return threading.Event()

    def worker(self, name: str, steps: Steps) -> Worker:
        return Worker(name, steps)


THREADS = Background()
