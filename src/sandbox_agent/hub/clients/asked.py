"""Requests whose answer is handed to a function at once, without a task or a timer for each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from sandbox_agent.errors import AgentTimeout, SandboxAgentError


class Answer(Struct, frozen=True):
    """A JSON-RPC answer, and the id of the last event that was on the stream before it."""

    line: bytes
    last_event_id: int


class Asked:
    """Stands among a connection's waiters as a Future does. A deadline of infinity never passes."""

    __slots__ = ("_give", "_ticket", "_waiters", "deadline", "method")

    def __init__(
        self,
        waiters: dict[int, Any],
        ticket: int,
        method: str | None,
        give: Callable[[Answer | SandboxAgentError], None],
    ) -> None:
        self.method = method
        self.deadline = math.inf
        self._waiters = waiters
        self._ticket = ticket
        self._give = give
        waiters[ticket] = self

    def done(self) -> bool:
        return self._ticket not in self._waiters

    def set_result(self, answer: Answer) -> None:
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

    def add(self, asked: Asked, timeout: float) -> None:
        asked.deadline = self._loop.time() + timeout
        if asked.deadline < self._earliest:
            self._arm(asked.deadline)

    def _arm(self, earliest: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._earliest = earliest
        self._timer = self._loop.call_at(earliest, self._pass) if earliest < math.inf else None

    def _pass(self) -> None:
        now = self._loop.time()
        waiting = [waiter for waiter in self._waiters.values() if isinstance(waiter, Asked)]
        for asked in waiting:
            if asked.deadline <= now:
                asked.give_up(timed_out(asked.method))
        self._arm(min((asked.deadline for asked in waiting if asked.deadline > now), default=math.inf))


def timed_out(method: str | None) -> AgentTimeout:
    return AgentTimeout(f"no answer to {method} in time; it will come on the stream")
