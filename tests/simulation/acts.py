"""The steps that a history is made of."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Protocol

import msgspec

from sandbox_agent.core.ids import AgentId, SessionName
from sandbox_agent.errors import SandboxAgentError
from simulation.agent import Memory
from simulation.client import META, Client
from simulation.facts import OPENING, Facts, Known
from simulation.server import Server
from simulation.watcher import Watcher


class Stage(Protocol):
    """What a step finds: the server as it is now, and those around it."""

    facts: Facts
    memories: dict[str, Memory]
    server: Server
    clients: list[Client]
    watcher: Watcher
    number: int
    """Of the newest request."""


class Act:
    """One step: its details follow from its own number, and from what there is."""

    def __init__(self, history: Stage, chance: Random) -> None:
        self._history = history
        self._chance = chance
        self._facts = history.facts
        self._server = history.server
        connected = [client for client in history.clients if client.connection is not None]
        self._client = chance.choice(connected or history.clients)
        known = [each for each in self._facts.sessions if self._is_surely_meant(each)]
        self._known = chance.choice(known) if known else None

    def _is_surely_meant(self, known: Known) -> bool:
        """Not one whose name or alias another has got after it was deleted, or may have."""
        may_be_given = known.alias is not None or self._history.memories[known.agent].character.counts_anew
        if may_be_given and (known.is_deleted or known.is_doubtful):
            return False
        return self._facts.named(known.name) is known

    async def connect(self) -> None:
        agent = self._chance.choice(sorted(self._history.memories))
        others = [client for client in self._history.clients if client.connection is None]
        if others:
            client = self._chance.choice(others)
            client.start(client.connect(agent))
            await asyncio.sleep(0.5)

    async def disconnect(self) -> None:
        await self._client.disconnect()

    async def follow(self) -> None:
        self._client.follow(self._chance.randint(0, self._client.position))

    async def unfollow(self) -> None:
        self._client.unfollow()

    async def watch(self) -> None:
        self._history.watcher.follow(self._chance.choice([0, 0, 2, 20]))

    async def unwatch(self) -> None:
        self._history.watcher.leave()

    async def new(self) -> None:
        ours: dict[str, Any] = {}
        alias = f"alias{self._chance.randrange(3)}" if self._chance.random() < 0.3 else None
        if alias is not None:
            ours["requestedSessionId"] = alias
        if self._chance.random() < 0.2:
            ours["permissionMode"] = self._chance.choice(["allow", "reject", "ask"])
        params = {"cwd": "/tmp", "mcpServers": [], "_meta": {META: ours}}
        for _ in range(self._chance.choice([1, 1, 1, 2])):
            self._ask("session/new", params, alias=alias)

    async def prompt(self) -> None:
        known = self._known
        if known is None:
            return
        for _ in range(self._chance.choice([1, 1, 1, 2, 5])):
            self._prompt(known)

    def _prompt(self, known: Known) -> None:
        turn_id = None
        if self._chance.random() < 0.7:
            is_again = known.turn_ids and self._chance.random() < 0.35
            turn_id = self._chance.choice(known.turn_ids) if is_again else f"t{len(known.turn_ids) + 1}"
            if not is_again:
                known.turn_ids.append(turn_id)
        acts = [self._act() for _ in range(self._chance.choice([1, 2, 4]))]
        text = msgspec.json.encode({"n": f"p{self._history.number + 1}", "birth": known.birth, "acts": acts}).decode()
        params: dict[str, Any] = {"sessionId": known.name, "prompt": [{"type": "text", "text": text}]}
        if known.alias is not None and self._chance.random() < 0.5 and not known.is_deleted:
            params["sessionId"] = known.alias
        ours = {"agent": known.agent}
        params["_meta"] = {META: ours if turn_id is None else {**ours, "turnId": turn_id}}
        self._ask("session/prompt", params, known=known, turn_id=turn_id)

    def _act(self) -> list[Any]:
        chance = self._chance
        kind = chance.choices(
            ["say", "murmur", "pause", "ask", "garbage", "strange", "title", "stall", "deaf", "twice", "die"],
            weights=[12, 3, 4, 3, 1, 0.5, 1, 0.7, 0.8, 0.3, 0.7],
        )[0]
        match kind:
            case "say":
                return [kind, chance.choice([1, 1, 2, 5, 30])]
            case "murmur":
                return [kind, chance.choice([5, 40]), chance.choice([0.0002, 0.003, 0.02])]
            case "pause":
                return [kind, chance.choice([0.0, 0.01, 0.5, 5.0])]
            case "ask":
                return [kind, chance.random() < 0.8]
            case "garbage":
                return [kind, chance.choice([1, 30])]
            case "deaf":
                return [kind, chance.choice([0.1, 30.0, None])]
            case "die":
                return [kind, chance.choice([0, 3])]
            case _:
                return [kind]

    async def cancel(self) -> None:
        if self._known is not None:
            params = {"sessionId": self._known.name, "_meta": {META: {"agent": self._known.agent}}}
            self._client.notify("session/cancel", params)

    async def take_back(self) -> None:
        self._client.notify("$/cancel_request", {"requestId": self._history.number - self._chance.randrange(3)})

    async def close(self) -> None:
        self._about("session/close")

    async def delete(self) -> None:
        self._about("session/delete")

    async def terminate(self) -> None:
        self._about("_sandboxagent/session/terminate")

    async def detach(self) -> None:
        self._about("_sandboxagent/session/detach")

    async def load(self) -> None:
        self._about("session/load", cwd="/tmp", mcpServers=[])

    async def resume(self) -> None:
        self._about("session/resume", cwd="/tmp", mcpServers=[])

    async def fork(self) -> None:
        self._about("session/fork", cwd="/tmp", mcpServers=[])

    async def configure(self) -> None:
        self._about("session/set_mode", modeId="x")

    async def answer(self) -> None:
        if self._client.open_asks:
            key = self._chance.choice(self._client.open_asks)
            self._client.answer_permission(key, option=self._chance.choice(["y", "n"]))

    async def read(self) -> None:
        if self._known is None:
            return
        after = self._chance.choice([0, 0, 3, 20])
        hub = self._server.hub
        try:
            record = await hub.sessions.look_up(SessionName(self._known.name, AgentId(self._known.agent)))
            entries = [entry async for entry in hub.sessions.history.read_all(record.key.stream, after=after)]
        except SandboxAgentError:
            return
        if not self._known.is_deleted and not self._known.is_doubtful and not self._facts.is_damaged:
            self._facts.read(self._known, entries, is_whole=False, is_sure=not hub.store.is_degraded)

    async def list(self) -> None:
        self._ask("session/list", {})

    async def misuse(self) -> None:
        params: dict[str, Any] = self._chance.choice(
            [{"cwd": 5}, {"cwd": "/", "mcpServers": "abc"}, {"cwd": "/", "_meta": {META: {"title": ["x"]}}}, {}]
        )
        self._ask("session/new", params)

    async def disk_full(self) -> None:
        self._server.disk.is_full = True

    async def disk_fails(self) -> None:
        self._server.disk.rate = self._chance.choice([0.02, 0.3])

    async def disk_stumbles(self) -> None:
        self._server.disk.stumbles_in = self._chance.choice([1, 1, 2, 3, 5, 10, 30])

    async def disk_well(self) -> None:
        self._server.disk.heal()

    async def agent_dies(self) -> None:
        running = [program for program in self._server.programs if not program.is_over]
        if running:
            self._chance.choice(running).exit(9)

    async def wait(self) -> None:
        await asyncio.sleep(self._chance.choice([0.01, 1.0, 30.0]))

    def _about(self, method: str, **params: Any) -> None:
        known = self._known
        if known is not None:
            ours = {"agent": known.agent}
            known.is_doubtful |= method == "session/delete" or (known.is_deleted and method in OPENING)
            self._ask(method, {"sessionId": known.name, **params, "_meta": {META: ours}}, known=known)
            if method in OPENING:
                known.last_opening = self._history.number

    def _ask(self, method: str, params: dict[str, Any], **more: Any) -> None:
        self._history.number += 1
        how = self._chance.choice(["wait", "wait", "ask", "async", "leave"])
        self._client.request(self._history.number, method, params, how=how, **more)
