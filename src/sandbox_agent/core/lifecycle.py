"""The states of an agent process, and which may follow which."""

from __future__ import annotations

import enum


class State(enum.Enum):
    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "error"
    """It exited by itself or did not start; the next use starts it again after the back-off."""


class Change(enum.Enum):
    START = "start"
    READY = "ready"
    EXIT = "exit"
    STOP = "stop"


TRANSITIONS: dict[tuple[State, Change], State] = {
    (State.STOPPED, Change.START): State.STARTING,
    (State.FAILED, Change.START): State.STARTING,
    (State.STARTING, Change.READY): State.RUNNING,
    (State.STARTING, Change.EXIT): State.FAILED,
    (State.RUNNING, Change.EXIT): State.FAILED,
    (State.STOPPING, Change.EXIT): State.STOPPED,
    (State.STARTING, Change.STOP): State.STOPPING,
    (State.RUNNING, Change.STOP): State.STOPPING,
    (State.STOPPED, Change.STOP): State.STOPPED,
    (State.FAILED, Change.STOP): State.STOPPED,
}


class Lifecycle:
    """One agent's state, its failures in a row and the back-off that they earn."""

    def __init__(self, *, first_delay: float = 0.5, longest_delay: float = 30.0, give_up_after: int = 5) -> None:
        self.state = State.STOPPED
        self.starts = 0
        self.failures = 0
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._give_up_after = give_up_after

    def apply(self, change: Change) -> State:
        """Move on. Raises ValueError for a change that the table does not know."""
        try:
            self.state = TRANSITIONS[self.state, change]
        except KeyError:
            raise ValueError(f"an agent process that is {self.state.value} cannot {change.value}") from None
        if change is Change.START:
            self.starts += 1
        if self.state is State.FAILED:
            self.failures += 1
        return self.state

    def worked(self) -> None:
        """The process did real work (answered a prompt, or stayed up for long): failures are forgiven."""
        self.failures = 0

    @property
    def restarts(self) -> int:
        return max(0, self.starts - 1)

    @property
    def delay(self) -> float:
        """Seconds to wait before the next start: none after the first failure, then doubling."""
        if self.failures < 2:
            return 0.0
        doublings = min(self.failures - 2, 60)  # more would overflow, and is past any longest delay
        return min(self._longest_delay, self._first_delay * 2.0**doublings)

    @property
    def is_crash_loop(self) -> bool:
        return self.failures >= self._give_up_after
