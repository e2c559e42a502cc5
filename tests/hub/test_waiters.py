"""Waits that end with a call instead of a task."""

from __future__ import annotations

import asyncio
from typing import Any

from sandbox_agent.errors import AgentTimeout
from sandbox_agent.hub.clients.waiters import Answered, Deadlines, Waiter
from support.waiting import until


async def test_an_answer_is_given_at_once_and_only_once_waited_for() -> None:
    waiters: dict[int, Any] = {}
    given: list[Any] = []
    asked = Waiter(waiters, 7, "m", given.append)
    assert waiters == {7: asked}
    assert not asked.done()
    asked.set_result(Answered(b"{}", 3))
    assert given == [Answered(b"{}", 3)]
    assert asked.done()
    assert waiters == {}


async def test_who_has_abandoned_is_given_nothing() -> None:
    waiters: dict[int, Any] = {}
    given: list[Any] = []
    asked = Waiter(waiters, 7, "m", given.append)
    Deadlines(waiters).add(asked, 0.01)
    asked.abandon()
    asked.abandon()
    assert asked.done()
    await asyncio.sleep(0.05)
    assert given == []


async def test_every_wait_ends_at_its_own_deadline_whatever_their_order() -> None:
    waiters: dict[int, Any] = {}
    ended: list[int] = []
    deadlines = Deadlines(waiters)
    for ticket, timeout in ((1, 0.3), (2, 0.1), (3, 0.2), (4, 600.0)):
        asked = Waiter(waiters, ticket, f"m{ticket}", lambda outcome, ticket=ticket: ended.append(ticket))  # type: ignore[misc]
        deadlines.add(asked, timeout)
    Waiter(waiters, 5, "unlimited", lambda outcome: ended.append(5))
    waiters[6] = asyncio.get_running_loop().create_future()
    await until(lambda: len(ended) == 3)
    assert ended == [2, 3, 1]
    assert list(waiters) == [4, 5, 6]


async def test_a_wait_that_is_too_long_ends_with_an_error_that_names_the_method() -> None:
    waiters: dict[int, Any] = {}
    given: list[Any] = []
    Deadlines(waiters).add(Waiter(waiters, 1, "session/list", given.append), 0.01)
    await until(lambda: bool(given))
    assert isinstance(given[0], AgentTimeout)
    assert "session/list" in str(given[0])
