"""Installs under way: shared by all who ask, told to all who listen, and going on when they leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from sandbox_agent.agents import AgentListing, InstallResult, InstallWish, Progress, ProgressCallback
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import Isolation, LaunchSpec
from sandbox_agent.errors import ShuttingDown

T = TypeVar("T")
_CLOSING = 2.0


class AgentCatalog(Protocol):
    def ids(self) -> list[AgentId]: ...
    def describe(self, agent: AgentId) -> AgentListing: ...
    def isolation(self, agent: AgentId) -> Isolation: ...
    def skills_place(self, agent: AgentId) -> str | None: ...
    async def ensure(self, agent: AgentId, *, progress: ProgressCallback | None = None) -> LaunchSpec: ...
    async def install(
        self, agent: AgentId, wish: InstallWish, *, progress: ProgressCallback | None = None
    ) -> InstallResult: ...


class Installs:
    """Has no time limit of its own: every step of an install has one."""

    def __init__(self, catalog: AgentCatalog) -> None:
        self._catalog = catalog
        self._tasks: dict[tuple[AgentId, InstallWish | None], asyncio.Task[Any]] = {}
        self._listeners: dict[AgentId, list[ProgressCallback]] = {}
        self._latest: dict[AgentId, Progress] = {}
        self._watcher: Callable[[AgentId, Progress], None] | None = None

    def describe(self, agent: AgentId) -> AgentListing:
        """What is installed now. Reads files. Raises UnknownAgent."""
        return self._catalog.describe(agent)

    def watch(self, watcher: Callable[[AgentId, Progress], None]) -> None:
        """`watcher` hears of every step of every install."""
        self._watcher = watcher

    async def ensure(self, agent: AgentId) -> LaunchSpec:
        """How to launch `agent`, installed if need be. Raises as the catalog does, and ShuttingDown."""
        return await self._share(agent, None, lambda tell: self._catalog.ensure(agent, progress=tell))

    async def install(
        self, agent: AgentId, wish: InstallWish, progress: ProgressCallback | None = None
    ) -> InstallResult:
        """Raises as the catalog does, and ShuttingDown."""
        with self._listening(agent, progress):
            return await self._share(agent, wish, lambda tell: self._catalog.install(agent, wish, progress=tell))

    def latest(self, agent: AgentId) -> Progress | None:
        """How far an install under way has come."""
        return self._latest.get(agent)

    async def close(self) -> None:
        """Cancel what is under way; what an install leaves behind is removed now or by the next one."""
        tasks = set(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSING)

    async def _share(
        self, agent: AgentId, wish: InstallWish | None, work: Callable[[ProgressCallback], Awaitable[T]]
    ) -> T:
        task = self._tasks.get((agent, wish))
        if task is None:
            task = asyncio.ensure_future(self._run(agent, work))
            self._tasks[agent, wish] = task
            task.add_done_callback(lambda done: self._done(agent, wish, done))
        try:
            result: T = await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ShuttingDown("the server is shutting down") from None
            raise
        return result

    async def _run(self, agent: AgentId, work: Callable[[ProgressCallback], Awaitable[T]]) -> T:
        def tell(progress: Progress) -> None:
            self._latest[agent] = progress
            if self._watcher is not None:
                self._watcher(agent, progress)
            for listener in self._listeners.get(agent, ()):
                listener(progress)

        return await work(tell)

    def _done(self, agent: AgentId, wish: InstallWish | None, task: asyncio.Task[Any]) -> None:
        del self._tasks[agent, wish]
        if not any(name == agent for name, _ in self._tasks):
            self._latest.pop(agent, None)
        if not task.cancelled():
            task.exception()  # whoever waits has got it

    @contextmanager
    def _listening(self, agent: AgentId, progress: ProgressCallback | None) -> Iterator[None]:
        if progress is None:
            yield
            return
        listeners = self._listeners.setdefault(agent, [])
        listeners.append(progress)
        try:
            yield
        finally:
            listeners.remove(progress)
            if not listeners:
                self._listeners.pop(agent, None)
