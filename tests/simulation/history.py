"""One history: a plan carried out on a virtual loop, life after life, and held against the promises."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sandbox_agent.core.ids import AgentId, SessionId, SessionName
from sandbox_agent.errors import StoreError, UnknownSession
from sandbox_agent.store.base import Entry
from simulation.acts import Act
from simulation.agent import Memory
from simulation.client import Client
from simulation.disk import HOME, cut_power, flip_a_bit
from simulation.facts import Broken, Facts, Known
from simulation.loop import VirtualLoop
from simulation.plan import PAUSES, Plan, Step
from simulation.server import Server, cancel_others, deterministic, empty_database
from simulation.trace import Trace
from simulation.watcher import Watcher

_ENDS = frozenset({"kill", "stop", "power", "flip"})
_PATIENCE = (0.5, 4.5, 15.0, 20.0, 60.0, 100.0)
"""Virtual seconds in which everything comes to its end once agents behave and the disk is well."""
_STOPPING = 5.0
_LAST_READS = 50


@dataclass(frozen=True, slots=True)
class Outcome:
    broken: Broken | None
    trace: Trace


def run_history(plan: Plan) -> Outcome:
    """Raises nothing: what goes wrong is in the outcome."""
    return History(plan).run()


class _Logged(logging.Handler):
    """Errors of ours that something caught and logged: that is what it calls an internal error."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""
            self._facts.fail("no internal errors", f"{record.getMessage()}: {error!r} at {where}")


class History:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.facts = Facts(has_retention=plan.retention is not None)
        self.trace = Trace()
        births: list[str] = []
        self.memories = {
            name: Memory(character, self.trace, births, finished=self.facts.finished)
            for name, character in plan.agents.items()
        }
        self._steps = list(plan.steps)
        self.number = 0
        self._loop: VirtualLoop
        self._is_closed = True
        self.server: Server
        self.clients: list[Client] = []
        self.watcher: Watcher

    def run(self) -> Outcome:
        home = Path(tempfile.mkdtemp(prefix="simulated-", dir=HOME))
        self.trace.home = str(home)
        handler = _Logged(self.facts)
        logger = logging.getLogger("sandbox_agent")
        level, propagates = logger.level, logger.propagate
        logger.addHandler(handler)
        logger.setLevel(logging.ERROR)
        logger.propagate = False
        now = 1000.0
        try:
            empty_database(home / "life0")
            life = 0
            is_over = False
            while not is_over and self.facts.broken is None:
                is_over = not self._steps
                now = self._live(home, life, now)
                life += 1
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagates
            shutil.rmtree(home)
        return Outcome(self.facts.broken, self.trace)

    def _live(self, home: Path, life: int, now: float) -> float:
        loop = self._loop = VirtualLoop(Random(f"{self._plan.seed}/{life}"), start=now)
        self.trace.clock = loop.time
        with deterministic(loop.time, loop.chance):
            try:
                loop.run_until_complete(self._life(home / f"life{life}", home / f"life{life + 1}"))
            except Exception as error:  # noqa: BLE001 - whatever it is, the history has found it
                self.facts.fail("nothing fails", repr(error))
            finally:
                self._bury(loop)
        return loop.time()

    def _bury(self, loop: VirtualLoop) -> None:
        """After a kill: what is left of the process neither does nor says anything that counts."""
        self.trace.is_closed = self.facts.is_frozen = True
        try:
            if not self._is_closed:
                self.server.disk.heal()
                loop.run_until_complete(self.server.store.close())
            loop.run_until_complete(cancel_others())
        finally:
            loop.close()
        self._forget_untold(is_damaged=False)  # made by an agent whose answer came when the server was gone

    async def _life(self, directory: Path, following: Path) -> None:
        self.trace.is_closed = self.facts.is_frozen = False
        self.trace.add("server", "starts")
        for memory in self.memories.values():
            memory.is_tame = False
        server = self.server = Server(self._plan, directory, self._loop, self.memories)
        self._is_closed = False
        try:
            is_kept = await server.start(is_damaged=self.facts.is_damaged)
        except StoreError as error:
            self._is_closed = True
            self.facts.fail("the server always starts", str(error))
            return
        if not is_kept:
            self.facts.sessions.clear()
        self.clients = [
            Client(f"client{number}", server.hub, self.facts, self.trace, Random(f"{self._plan.seed}/client{number}"))
            for number in range(self._plan.clients)
        ]
        self.watcher = Watcher(server.hub.feed, self.facts, self.trace, limit=self._plan.feed_limit)
        await self._check_histories(is_restart=True)
        while self._steps and self.facts.broken is None:
            step = self._steps.pop(0)
            if step.kind in _ENDS:
                await self._end(step, following)
                return
            self.trace.add("step", step.kind)
            await self._do(step)
            await asyncio.sleep(step.chance().choice(PAUSES))
            self._look_around()
        if self.facts.broken is None:
            await self._settle()
            await self._end(Step("stop", 0), following)

    async def _end(self, step: Step, following: Path) -> None:
        self.trace.add("server", f"ends by {step.kind}")
        if step.kind == "stop":
            await self._stop(following)
            return
        self.server.kill(following)
        self.trace.is_closed = self.facts.is_frozen = True
        self._forget_untold(is_damaged=step.kind in ("power", "flip"))
        if step.kind == "power":
            cut_power(following, step.chance())
        elif step.kind == "flip":
            flip_a_bit(following, step.chance())
        self.facts.crashed(damaged=step.kind in ("power", "flip"))

    async def _stop(self, following: Path) -> None:
        started = self._loop.time()
        was_well = self.server.disk.is_well and not self.server.store.is_degraded
        for client in self.clients:
            client.follow()
        await self.server.hub.close()
        took = self._loop.time() - started
        if took > _STOPPING:
            self.facts.fail("a stop is bounded", f"it took {took:.1f} s")
        for _ in range(_LAST_READS):
            await asyncio.sleep(0.1)
            if not any(client.is_behind for client in self.clients):
                break
        self._look_around()
        for client in self.clients:
            if client.is_cut_off:
                client.void()
        self.facts.require_answers()
        await self.server.store.close()
        self._is_closed = True
        if not was_well:
            self.facts.crashed(damaged=False)
        shutil.copytree(self.server.directory, following)

    def _forget_untold(self, *, is_damaged: bool) -> None:
        told = {known.birth for known in self.facts.sessions if known.is_sure}
        for memory in self.memories.values():
            memory.forget_untold(told, is_damaged=is_damaged)

    async def _settle(self) -> None:
        """Agents behave, the disk is well, everybody reads: now everything has to come to its end."""
        self.trace.add("step", "settle")
        self.server.disk.heal()
        self.server.tame()
        for client in self.clients:
            client.follow()
        for seconds in _PATIENCE:
            await asyncio.sleep(seconds)
            self.server.tame()
            if self._is_quiet():
                break
        for client in self.clients:
            client.follow()
        self.watcher.follow(0)
        await asyncio.sleep(1.0)
        self._look_around()
        self._check_states()
        self.watcher.check()
        self.facts.require_answers()
        if self.server.store.backlog():
            await asyncio.sleep(self._plan.linger + 1.0)  # what was said last may wait for more to come
        if self.server.store.is_degraded or self.server.store.backlog():
            self.facts.fail("a store recovers", str(self.server.store.health()))
        await self._check_histories(is_restart=False)

    def _check_states(self) -> None:
        """Whoever of version 2 was told that a session works has been told that it is idle."""
        for client in self.clients:
            for name, state in client.states.items():
                if state != "idle" and self._is_idle_for(client, name):
                    self.facts.fail("what began is told to be over", f"{client.name}: {name} is {state}")

    def _is_idle_for(self, client: Client, name: str) -> bool:
        """Whether it is attached to a session of that name, and nothing runs in it."""
        found = [agent.sessions[SessionId(name)] for agent in self.server.hub.agents if name in agent.sessions]
        connection = client.connection.id if client.connection is not None else None
        return any(session.is_idle and connection in session.attached for session in found)

    def _is_quiet(self) -> bool:
        store = self.server.store
        is_written = not store.is_degraded and not store.backlog()
        return is_written and all(taken.answers or taken.is_void for taken in self.facts.taken)

    def _look_around(self) -> None:
        if self._loop.trouble:
            self.facts.fail("no internal errors", self._loop.trouble[0])
        for name, memory in self.memories.items():
            if memory.faults:
                self.facts.fail("agents are treated well", f"{name}: {memory.faults[0]}")
            deleted = {known.birth for known in self.facts.sessions if known.is_deleted}
            for (birth, turn_id), count in memory.turns.items():
                if count > 1 and birth not in deleted and not self.facts.is_damaged:
                    self.facts.fail("no turnId runs twice", f"{turn_id} of {birth} ran {count} times")

    async def _check_histories(self, *, is_restart: bool) -> None:
        # What is not read after a restart is new to the store when somebody uses it.
        is_read = not is_restart or self.facts.is_damaged or self._loop.chance.random() < 0.5
        for known in list(self.facts.sessions):
            await self._check_history(known, is_restart=is_restart, is_read=is_read)

    async def _check_history(self, known: Known, *, is_restart: bool, is_read: bool) -> None:
        hub, facts = self.server.hub, self.facts
        entries: list[Entry] = []
        try:
            record = await hub.sessions.look_up(SessionName(known.name, AgentId(known.agent)))
            if is_read:
                entries += [entry async for entry in hub.sessions.history.read_all(record.key.stream)]
        except UnknownSession:
            if known.is_sure and not known.is_deleted and not known.is_doubtful and not facts.is_damaged:
                facts.fail("a session outlives the server", f"{known.name} is unknown")
            known.is_deleted = True
            return
        except StoreError as error:
            if not facts.is_damaged:
                facts.fail("a history can be read", f"{known.name}: {error}")
            return
        if (facts.is_damaged or not known.is_sure) and facts.has_namesake(known):
            known.is_doubtful = True  # a deletion may be taken back by damage or a full disk, with what came after it
        if known.is_doubtful:
            return
        if known.is_deleted:
            is_free = facts.named(known.name) is known and not self._is_given_again(known)
            if known.is_sure and is_restart and not facts.is_damaged and is_free:
                facts.fail("what was deleted stays deleted", known.name)
            return
        if facts.is_damaged:
            known.history = {}
        if is_read:
            facts.read(known, entries, is_whole=True, is_sure=not hub.store.is_degraded)

    def _is_given_again(self, known: Known) -> bool:
        """Whether the agent has given its name to another, of which perhaps nobody was told."""
        return bool(self.memories[known.agent].given.get(known.name, set()) - {known.birth})

    async def _do(self, step: Step) -> None:
        act = Act(self, step.chance())
        await getattr(act, step.kind)()
