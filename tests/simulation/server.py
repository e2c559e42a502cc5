"""One life of a server: store, hub and agents on a virtual loop, from a start to a stop or a kill."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from sandbox_agent.agents import AgentListing, InstallResult, InstallWish, ProgressCallback
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import Isolation, LaunchSpec
from sandbox_agent.errors import StoreError, UnknownAgent
from sandbox_agent.files import FileService
from sandbox_agent.hub.housekeeping import close_idle, rest_idle, watch_store
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store import Retention, SqliteStore
from sandbox_agent.store.sqlite.check import repair_database
from sandbox_agent.store.sqlite.schema import open_database
from sandbox_agent.store.sqlite.writer import Pace
from simulation.agent import AgentProgram, Memory
from simulation.child import SimulatedChild
from simulation.disk import SimulatedDisk
from simulation.loop import SteppedBackground, VirtualLoop
from simulation.plan import Plan
from support.limits import HUB_OPTIONS, file_limits

EPOCH = 1_700_000_000.0
_STORE_EVERY = 2.0
"""Virtual seconds: a server looks more often, and most of a history would be looking."""
_FILES = FileService((), Path.cwd(), file_limits(), data_dir=None)


class Server:
    def __init__(self, plan: Plan, directory: Path, loop: VirtualLoop, memories: dict[str, Memory]) -> None:
        self.directory = directory
        self.path = directory / "history.db"
        self.disk = SimulatedDisk(loop.chance)
        self.programs: list[AgentProgram] = []
        self._is_killed = False
        self._loop = loop
        self._memories = memories
        self._background = SteppedBackground(loop)
        self._pids = itertools.count(100)
        self.store = SqliteStore(
            self.path,
            retention=Retention(age=plan.retention, bytes=None),
            memory_bytes=plan.memory_bytes,
            search_text_bytes=0,
            clock=lambda: EPOCH + loop.time(),
            pace=Pace(linger=plan.linger, longest_retry=1.0, retention_interval=3.0),
            disk=self.disk,
            background=self._background,
        )
        agent = dataclasses.replace(HUB_OPTIONS.agent, start_child=self._start_child)
        options = dataclasses.replace(HUB_OPTIONS, agent=agent, window_bytes=plan.window_bytes, unattended=20.0)
        self.hub = Hub(self.store, _Catalog(memories), environ={}, options=options, files=_FILES)

    async def start(self, *, is_damaged: bool) -> bool:
        """Open the store; say whether what was in it could be used, if need be after a repair."""
        is_kept = True
        try:
            await self.store.open()
        except StoreError:
            if not is_damaged:
                raise
            is_kept = _repaired(self.path)
            if not is_kept:
                self.path.unlink()
            await self.store.open()
        self.hub.tasks.start(watch_store(self.hub, _STORE_EVERY))
        self.hub.tasks.start(close_idle(self.hub, 600.0))
        self.hub.tasks.start(rest_idle(self.hub, 20.0))
        return is_kept

    async def stop(self) -> None:
        await self.hub.close()
        await self.store.close()

    def kill(self, target: Path) -> None:
        """The process is gone from one moment to the next; what it wrote is in `target`."""
        shutil.copytree(self.directory, target)
        self._is_killed = True
        for program in self.programs:
            program.is_cut_off = True
        self._background.kill()

    def tame(self) -> None:
        for memory in self._memories.values():
            memory.is_tame = True
        for program in self.programs:
            if not program.is_over:
                program.tame()

    def _start_child(self, command: Sequence[str], **_: Any) -> SimulatedChild:
        number = next(self._pids)
        program = AgentProgram(f"{command[0]}/{number}", self._memories[command[0]])
        program.is_cut_off = self._is_killed
        self.programs.append(program)
        return SimulatedChild(self._loop, number, program)


class _Catalog:
    def __init__(self, memories: dict[str, Memory]) -> None:
        self._memories = memories

    def ids(self) -> list[AgentId]:
        return [AgentId(name) for name in self._memories]

    def describe(self, agent: AgentId) -> AgentListing:
        raise UnknownAgent(agent, list(self._memories))

    def isolation(self, agent: AgentId) -> Isolation:
        memory = self._memories.get(agent)
        return "session" if memory is not None and memory.character.has_a_process_per_session else "process"

    def skills_place(self, agent: AgentId) -> str | None:
        return None

    async def ensure(self, agent: AgentId, *, progress: ProgressCallback | None = None) -> LaunchSpec:
        if agent not in self._memories:
            raise UnknownAgent(agent, list(self._memories))
        return LaunchSpec(agent=agent, command=(agent,))

    async def install(
        self, agent: AgentId, wish: InstallWish, *, progress: ProgressCallback | None = None
    ) -> InstallResult:
        raise UnknownAgent(agent, list(self._memories))


def empty_database(directory: Path) -> None:
    """As the first start makes it: made once, then copied, since to make one takes longer than most histories."""
    directory.mkdir()
    (directory / "history.db").write_bytes(_template())


_made: list[bytes] = []


def _template() -> bytes:
    if not _made:
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"simulated-{os.getpid()}.db"
        connection = open_database(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        _made.append(path.read_bytes())
        path.unlink()
    return _made[0]


def _repaired(path: Path) -> bool:
    try:
        repair_database(path)
    except StoreError:
        return False
    return True


@contextmanager
def deterministic(clock: Callable[[], float], chance: Random) -> Iterator[None]:
    """Whoever asks for the time gets the virtual one, and whoever asks for a secret gets the seed's."""
    replaced: list[tuple[Any, str, Any]] = [
        (time, "time", lambda: EPOCH + clock()),
        (time, "monotonic", clock),
        (time, "perf_counter", itertools.count(0.0, 1e-6).__next__),
        (os, "urandom", chance.randbytes),
        (secrets, "token_bytes", lambda size=32: chance.randbytes(size)),
    ]
    kept = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, function in replaced:
        setattr(module, name, function)
    try:
        yield
    finally:
        for module, name, function in kept:
            setattr(module, name, function)


async def cancel_others() -> None:
    """End every task but this one, and what they start in their turn."""
    for _ in range(10):
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        if not others:
            return
        await asyncio.wait(others, timeout=1.0)
