"""Requests whose answer is handed to a function at once, without a task or a timer for each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from sandbox_agent.errors import AgentTimeout, SandboxAgentError


class Answered(Struct, frozen=True):
    """A JSON-RPC answer, and the id of the last event that was on the stream before it."""

    line: bytes
    last_event_id: int


class Waiter:
    """Stands among a connection's waiters as a Future does. A deadline of infinity never passes."""

    __slots__ = ("_give", "_ticket", "_waiters", "deadline", "method")

    def __init__(
        self,
        waiters: dict[int, Any],
        ticket: int,
        method: str | None,
        give: Callable[[Answered | SandboxAgentError], None],
    ) -> None:
        self.method = method
        self.deadline = math.inf
        self._waiters = waiters
        self._ticket = ticket
        self._give = give
        waiters[ticket] = self

    def done(self) -> bool:
        return self._ticket not in self._waiters

    def set_result(self, answer: Answered) -> None:
        del self._waiters[self._ticket]
        self._give(answer)

    def give_up(self, error: SandboxAgentError) -> None:
        del self._waiters[self._ticket]
        self._give(error)

    def abandon(self) -> None:
        """Nobody waits any more: the answer will go onto the stream."""
        self._waiters.pop(self._ticket, None)


class Deadlines:
    """Ends waits that take too long. There is one timer for all, since most are over long before."""

    def __init__(self, waiters: dict[int, Any]) -> None:
        self._waiters = waiters
        self._loop = asyncio.get_running_loop()  # kept, since to ask for it is a system call
        self._timer: asyncio.TimerHandle | None = None
        self._earliest = math.inf

    def add(self, waiter: Waiter, timeout: float) -> None:
        waiter.deadline = self._loop.time() + timeout
        if waiter.deadline < self._earliest:
            self._arm(waiter.deadline)

    def _arm(self, earliest: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._earliest = earliest
        self._timer = self._loop.call_at(earliest, self._pass) if earliest < math.inf else None

    def _pass(self) -> None:
        now = self._loop.time()
        waiting = [waiter for waiter in self._waiters.values() if isinstance(waiter, Waiter)]
        for waiter in waiting:
            if waiter.deadline <= now:
                waiter.give_up(timed_out(waiter.method))
        self._arm(min((waiter.deadline for waiter in waiting if waiter.deadline > now), default=math.inf))


def timed_out(method: str | None) -> AgentTimeout:
    return AgentTimeout(f"no answer to {method} in time; it will come on the stream")
