"""Where the events of a stream stand in which histories, in order and without IO."""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from sandbox_agent.hub.clients.stream import Batch
from sandbox_agent.hub.cluster.wire import Run


class Places:
    """Noted as events are numbered, and taken as they are read, each once."""

    def __init__(self) -> None:
        self._notes: deque[tuple[int, Run]] = deque()
        """The first event that each is about."""

    def note(self, first: int, run: Run) -> None:
        """The next `run.count` events, from event `first` on."""
        if self._notes and run.count:
            at, last = self._notes[-1]
            if last.count and at + last.count == first and _goes_on(last, run):
                self._notes[-1] = at, replace(last, count=last.count + run.count)
                return
        self._notes.append((first, run))

    def take(self, batch: Batch, *, after: int) -> list[Run]:
        """What is known of a batch that follows event `after`. To be asked of each batch, in order."""
        end = batch.first_id + len(batch.lines)
        is_gap = batch.first_id != after + 1  # a notice stands for what is no more
        runs: list[Run] = [Run(1)] if is_gap else []
        while self._notes and self._notes[0][0] < end:
            first, run = self._notes.popleft()
            inside = min(first + run.count, end) - first
            if inside < run.count:
                self._notes.appendleft((end, _without(run, inside)))
            if not is_gap or not run.count:
                left = None if run.left is None else run.count - inside
                runs.append(replace(run, count=inside, left=left))
        return runs


def _goes_on(last: Run, run: Run) -> bool:
    """Whether both can be told as one. What is a part of one entry is told apart from all else."""
    if last.left is not None or run.left is not None or (last.agent, last.session) != (run.agent, run.session):
        return False
    return (run.sequence, run.entry) == (_after(last.sequence, last.count), _after(last.entry, last.count))


def _without(run: Run, lines: int) -> Run:
    """What remains when its first lines have been told."""
    entry = _after(run.entry, lines) if run.left is None else run.entry
    return replace(run, count=run.count - lines, sequence=_after(run.sequence, lines), entry=entry)


def _after(first: int, count: int) -> int:
    return first + count if first else 0
