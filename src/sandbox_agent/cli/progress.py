"""How far long work has come: a bar on a terminal, lines for the steps of an install elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox_agent.agents import Progress

Advance = Callable[["Progress"], None]


@contextlib.contextmanager
def install_progress(agent: str, *, is_shown: bool) -> Iterator[Advance]:
    """On stderr, so that stdout stays what was asked for."""
    if not is_shown:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(agent) as advance:
            yield advance
    else:
        yield _Lines(agent).advance


@contextlib.contextmanager
def byte_progress(label: str, *, is_shown: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar of bytes, on a terminal only; gives what is called with those done and all of them."""
    if not is_shown or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def _bar(agent: str) -> Iterator[Advance]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{agent}: starting", total=None)

        def advance(progress: object) -> None:
            fraction = getattr(progress, "fraction", None)
            done = getattr(progress, "bytes", 0)
            total = done / fraction if fraction and done else None
            message = str(getattr(progress, "message", ""))[:32]
            bar.update(task, description=f"{agent}: {message}", completed=done, total=total)

        yield advance


class _Lines:
    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._step = ""

    def advance(self, progress: Progress) -> None:
        if progress.step != self._step:
            self._step = progress.step
            sys.stderr.write(f"{self._agent}: {progress.message}\n")
