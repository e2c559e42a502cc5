"""Where the events of a stream stand in which histories, in order and without IO."""

from __future__ import annotations

from collections import deque

from sandbox_agent.hub.clients.stream import Batch
from sandbox_agent.hub.cluster.wire import Run


class Places:
    """Noted as events are numbered, and taken as they are read, each once."""

    def __init__(self) -> None:
        self._notes: deque[tuple[int, Run]] = deque()
        """The first event that each is about."""

    def note(self, first: int, run: Run) -> None:
        """The next `run.count` events, from event `first` on."""
        if self._notes and run.count and not run.entry:
            at, last = self._notes[-1]
            follows = last.sequence + last.count == run.sequence if run.sequence else not last.sequence
            is_same = (last.agent, last.session) == (run.agent, run.session)
            if last.count and not last.entry and follows and is_same and at + last.count == first:
                self._notes[-1] = at, Run(last.count + run.count, run.agent, run.session, last.sequence)
                return
        self._notes.append((first, run))

    def take(self, batch: Batch, *, after: int) -> list[Run]:
        """What is known of a batch that follows event `after`. To be asked of each batch, in order."""
        end = batch.first_id + len(batch.lines)
        is_gap = batch.first_id != after + 1  # a notice stands for what is no more
        runs: list[Run] = [Run(1)] if is_gap else []
        while self._notes and self._notes[0][0] < end:
            first, run = self._notes[0]
            inside = min(first + run.count, end) - first
            left = run.count - inside
            if left:
                sequence = run.sequence + inside if run.sequence else 0
                self._notes[0] = end, Run(left, run.agent, run.session, sequence, run.entry)
            else:
                self._notes.popleft()
            if not is_gap or not run.count:
                runs.append(Run(inside, run.agent, run.session, run.sequence, run.entry, left if run.entry else 0))
        return runs
