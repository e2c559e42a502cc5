"""Names that agents give: no session is made while one is taken up again by a name that the new one may get."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import AgentTimeout

_PATIENCE = 10.0
"""Seconds that one of them waits for the other: an agent may never answer."""
_DRAWN_BY_LOT = 20
"""Characters. An agent does not give a name as long as that twice; a shorter one it may have counted, and counts anew
in its next process."""


class Naming:
    """For each agent, over all its processes: they share what it keeps on disk. Who comes first goes first."""

    def __init__(self) -> None:
        self._under_way: dict[AgentId, list[tuple[str, asyncio.Future[Any]]]] = {}
        self._draws_by_lot: dict[AgentId, asyncio.Event] = {}

    @asynccontextmanager
    async def making(self, agent: AgentId, *, is_apart: bool) -> AsyncIterator[None]:
        """While the agent makes a session, and until it is known whose name it got. Raises AgentTimeout.

        Where sessions have processes of their own (`is_apart`), two of them may give one name at the same time, and the
        agent will mean the newer one by it: so one is made after the other, until the agent is known to draw names by
        lot. That is waited for as long as for the rest, and then no longer."""
        known = self._draws_by_lot.setdefault(agent, asyncio.Event())
        makers = [other for does, other in self._under_way.get(agent, []) if does == "making"] if is_apart else []
        async with self._alone(agent, "making"):
            if makers and not known.is_set():
                await _first_of(makers, known)
            yield

    def made(self, agent: AgentId, native: str) -> None:
        """The agent has given this name to a session that it made."""
        known = self._draws_by_lot.setdefault(agent, asyncio.Event())
        if len(native) >= _DRAWN_BY_LOT:
            known.set()
        else:
            known.clear()

    @asynccontextmanager
    async def resuming(self, agent: AgentId, native: str) -> AsyncIterator[None]:
        """While the agent takes up again what it calls `native`. Raises AgentTimeout."""
        if len(native) >= _DRAWN_BY_LOT:
            yield
            return
        async with self._alone(agent, "resuming"):
            yield

    @asynccontextmanager
    async def _alone(self, agent: AgentId, what: str) -> AsyncIterator[None]:
        """Wait for those before us who do the other thing; those after us wait for us."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        under_way = self._under_way.setdefault(agent, [])
        before = [other for does, other in under_way if does != what]
        under_way.append((what, done))
        try:
            if before and (await asyncio.wait(before, timeout=_PATIENCE))[1]:
                other = "resuming" if what == "making" else "making"
                raise AgentTimeout(
                    f"agent {agent!r} is still {other} a session, and could give both the same name; try again"
                )
            yield
        finally:
            under_way.remove((what, done))
            done.set_result(None)
            if not under_way:
                self._under_way.pop(agent, None)


async def _first_of(others: list[asyncio.Future[Any]], known: asyncio.Event) -> None:
    """Return when all others have come, or it is known, or too long was waited for that."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            knowing: asyncio.Future[Any] = asyncio.ensure_future(known.wait())
            try:
                while not known.is_set() and (waiting := {other for other in others if not other.done()}):
                    await asyncio.wait(waiting | {knowing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                knowing.cancel()
