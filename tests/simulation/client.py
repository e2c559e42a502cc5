"""Simulated clients: each follows its connection's events as a door would show them, and checks every one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from random import Random
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId, ConnectionId
from sandbox_agent.core.methods import UNLIMITED
from sandbox_agent.errors import AgentTimeout, SandboxAgentError
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.stream import Batch, Reader
from sandbox_agent.hub.clients.waiters import Answered
from sandbox_agent.hub.hub import Hub
from simulation.facts import LOST, Facts, Known, Taken
from simulation.speech import told
from simulation.trace import Trace

META = "sandboxagent.dev"
GAP = "_sandboxagent/stream/gap"
REQUEST_TIMEOUT = 120.0


class Client:
    """One program that uses the server. Its connection is one of this life; it makes another when that is gone."""

    def __init__(self, name: str, hub: Hub, facts: Facts, trace: Trace, chance: Random) -> None:
        self.name = name
        self.connection: Connection | None = None
        self.open_asks: list[Any] = []
        """Permissions that it was asked for and has not answered."""
        self.is_cut_off = False
        """The store could not be read when it followed last."""
        self.answers_at_once = chance.random() < 0.6
        self.version = chance.choice([1, 1, 2])
        self.states: dict[str, str] = {}
        """What one who speaks version 2 was last told that each session does."""
        self._hub = hub
        self._facts = facts
        self._trace = trace
        self._chance = chance
        self._events: dict[int, bytes] = {}
        self._position = 0
        self._reading: asyncio.Task[None] | None = None
        self._work: list[asyncio.Task[None]] = []
        self._taken: dict[int, Taken] = {}
        self._connections = 0

    async def connect(self, agent: str) -> None:
        self._connections += 1
        name = ConnectionId(f"{self.name}-{self._connections}")
        try:
            said = {"protocolVersion": self.version, "info": {"name": self.name, "version": "1"}, "capabilities": {}}
            connection, _ = await self._hub.open_connection(AgentId(agent), said, connection_id=name)
        except SandboxAgentError as error:
            self._say(f"cannot connect: {type(error).__name__}")
            return
        self._say(f"connected to {agent}")
        self.void()
        self.connection = connection
        self._events, self._position, self.open_asks = {}, 0, []
        self.follow(0)

    async def disconnect(self) -> None:
        if self.connection is not None:
            gone, self.connection = self.connection, None
            self.void()
            await self._hub.close_connection(gone.id)

    def follow(self, after: int | None = None) -> None:
        """Read the stream, from where it was left or from an earlier event again."""
        if self.connection is None or self.connection.is_closed:
            return
        self.unfollow()
        self.is_cut_off = False
        reader = self.connection.stream.read_from(self._position if after is None else min(after, self._position))
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))

    def unfollow(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    @property
    def position(self) -> int:
        return self._position

    @property
    def is_behind(self) -> bool:
        """There are events that it has not read, though it follows."""
        is_reading = self._reading is not None and not self._reading.done()
        return is_reading and self.connection is not None and self._position < self.connection.stream.last_id

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self._send(frames.notification(method, params))

    def answer_permission(self, key: Any, *, option: str) -> None:
        outcome = {"outcome": {"outcome": "selected", "optionId": option}}
        self._send(frames.result(msgspec.json.encode(key), outcome))

    def request(
        self,
        number: int,
        method: str,
        params: dict[str, Any],
        *,
        how: str,
        known: Known | None = None,
        turn_id: str | None = None,
        alias: str | None = None,
    ) -> None:
        """Send a request: `wait` for the answer, `leave` before it comes, or have it on the stream (`async`)."""
        if self.connection is None:
            return
        taken = Taken(number, method, how, known, turn_id, alias, self.connection.agent, self.version)
        if self.version == 2:
            method, params = _in_version_2(method, params)
        raw = frames.request(b"%d" % number, method, params)
        self._say("asks", raw)
        self.start(self._request(self.connection, taken, raw))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that takes time, beside whatever else it does."""
        self._work.append(asyncio.get_running_loop().create_task(work))

    async def _request(self, connection: Connection, taken: Taken, raw: bytes) -> None:
        frame = frames.parse(raw)
        try:
            await self._hub.room(connection, frame)
        except SandboxAgentError as error:
            self._say(f"has {taken.number} refused: {type(error).__name__}")
            return
        self._facts.taken.append(taken)
        self._taken[taken.number] = taken
        timeout = None if taken.method in UNLIMITED else REQUEST_TIMEOUT
        try:
            if taken.where == "async":
                connection.submit(frame, raw)
            elif taken.where == "leave":
                await self._ask_and_leave(connection, taken, frame, raw)
            elif taken.where == "ask":
                connection.ask(frame, raw, lambda answer: self._given(taken, answer), timeout=timeout)
            else:
                answer = await connection.request(frame, raw, timeout=timeout)
                self._hear(taken, answer.line)
        except AgentTimeout:
            taken.where = "stream"
        except SandboxAgentError as error:
            taken.answers += 1
            self._say(f"has {taken.number} fail: {type(error).__name__}")

    async def _ask_and_leave(self, connection: Connection, taken: Taken, frame: frames.Frame, raw: bytes) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._chance.choice([0.0, 0.001, 0.05, 1.0])):
                self._hear(taken, (await connection.request(frame, raw, timeout=None)).line)

    def _given(self, taken: Taken, answer: Answered | SandboxAgentError) -> None:
        if isinstance(answer, Answered):
            self._hear(taken, answer.line)
        elif isinstance(answer, AgentTimeout):
            taken.where = "stream"
        else:
            taken.answers += 1
            self._say(f"has {taken.number} fail: {type(answer).__name__}")

    def _hear(self, taken: Taken, line: bytes) -> None:
        self._say("is answered", line)
        message = msgspec.json.decode(line)
        is_sure = not self._hub.store.is_degraded
        self._facts.answered(taken, message, is_sure=is_sure)
        result = message.get("result")
        if not isinstance(result, dict) or self._facts.is_frozen:
            return
        birth = (result.get("_meta") or {}).get("birth")
        if taken.method in ("session/new", "session/fork") and birth is not None:
            lineage = frozenset({birth}) | (taken.known.lineage if taken.known is not None else frozenset())
            agent = ((result["_meta"]).get(META) or {}).get("agent") or taken.agent
            self._check_alias(taken.alias)
            self._facts.born(Known(result["sessionId"], agent, birth, lineage, taken.alias, is_sure))
        elif taken.method == "_sandboxagent/session/detach" and taken.known is not None:
            self.states.pop(taken.known.name, None)  # it wants to know no more
        elif taken.method == "session/delete" and taken.known is not None:
            taken.known.is_deleted = True
            taken.known.answers.clear()  # its turns are forgotten with it
            # An agent that cannot delete it has it still, for one who asked to load it at the same moment.
            taken.known.is_doubtful = self._facts.is_being_taken_up(taken.known, taken)
            taken.known.is_sure &= is_sure

    def _check_alias(self, alias: str | None) -> None:
        others = [known.name for known in self._facts.usable if alias is not None and known.alias == alias]
        if others and not any(known.is_doubtful for known in self._facts.usable):
            self._facts.fail("an alias names one session", f"{alias} was given away, {others} has it")

    async def _read(self, reader: Reader) -> None:
        self._position = reader.position
        try:
            while not reader.is_over:
                before = reader.position
                batch = await reader.take(wait=10.0)
                if batch is not None:
                    self._take(before, batch)
        except SandboxAgentError as error:
            self._say(f"loses its stream: {type(error).__name__}")
            self.is_cut_off = True
        finally:
            reader.close()

    def _take(self, before: int, batch: Batch) -> None:
        self._say(f"sees {batch.first_id}", *batch.lines)
        first = msgspec.json.decode(batch.lines[0])
        if first.get("method") == GAP:
            if first["params"]["fromId"] != before + 1 or first["params"]["toId"] != batch.first_id:
                self._facts.fail("gaps are told as they are", f"{self.name} after {before}: {first}")
            self._position = batch.first_id
            self.void()
            return
        if batch.first_id != before + 1:
            self._facts.fail("event ids have no holes", f"{self.name} gets {batch.first_id} after {before}")
        for event, line in enumerate(batch.lines, batch.first_id):
            self._position = event
            known = self._events.get(event)
            if known is None:
                self._events[event] = line
                self._see(msgspec.json.decode(line))
            elif known != line and msgspec.json.decode(line).get("method") != LOST:
                self._facts.fail("an event id means one event", f"{self.name}: {event} is {line!r}, was {known!r}")

    def _see(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == LOST:
            self.void()
        elif method is None:
            taken = self._taken.get(message["id"])
            if taken is None:
                self._facts.fail("answers go to who asked", f"{self.name}: {message}")
            else:
                self._hear(taken, msgspec.json.encode(message))
        elif method == "session/update":
            for token in told([message]):
                if "." in token:
                    self._facts.saw(params["sessionId"], token, is_sure=not self._hub.store.is_degraded)
            if params["update"]["sessionUpdate"] == "state_update":
                self._see_state(params["sessionId"], params["update"]["state"])
        elif method == "session/request_permission":
            self.open_asks.append(message["id"])
            if self.answers_at_once:
                self.answer_permission(message["id"], option="y")

    def _see_state(self, session: str, state: str) -> None:
        self.states[session] = state
        if self.version == 1:
            self._facts.fail(
                "each is told in its version", f"{self.name} of version 1 is told that {session} is {state}"
            )

    def _send(self, raw: bytes) -> None:
        if self.connection is not None:
            self.start(self._post(self.connection, raw))

    async def _post(self, connection: Connection, raw: bytes) -> None:
        self._say("sends", raw)
        frame = frames.parse(raw)
        with contextlib.suppress(SandboxAgentError):
            await self._hub.room(connection, frame)
            self._hub.send(connection, frame, raw)

    def void(self) -> None:
        """The connection is gone, or a hole is told: what was to come on its stream may not come any more."""
        self.states.clear()
        for taken in self._taken.values():
            taken.is_void |= taken.where in ("async", "leave", "stream")

    def _say(self, what: str, *lines: bytes) -> None:
        self._trace.add(self.name, what, *lines)


def _in_version_2(method: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same request in the words of version 2."""
    match method:
        case "session/load":
            return "session/resume", {**params, "replayFrom": {"type": "start"}}
        case "session/set_mode":
            kept = {name: value for name, value in params.items() if name != "modeId"}
            return "session/set_config_option", {**kept, "configId": "mode", "value": params["modeId"], "type": "id"}
    return method, params
