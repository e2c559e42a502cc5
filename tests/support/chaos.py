"""A cluster under random faults, and a checker that knows what every client saw.

Writers send prompts under turn ids, each to whatever node is there, and again to another if they get no answer.
Watchers follow a session with sequences; one that loses its node goes on at another after the last sequence that it
saw. In between nodes are killed, paused, stopped and cut off, and the database is restarted. In the end everything that
anybody saw is held against the histories.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from support.cluster import LEASE_MS, TOKEN
from support.link_proxy import LinkProxy, link_proxy
from support.postgres import PostgresServer
from support.rpc import RpcClient, open_client, prompt_params, sse_blocks
from support.server import Server, running_server
from support.witness import Record, Stay, judge, newest_update

LEASE = LEASE_MS / 1000
_ANSWER = 60.0
"""Seconds after which a request counts as unanswered."""
_SEQUENCES = {"_meta": {"sandboxagent.dev": {"sequences": True}}}


@dataclass
class Verdict:
    faults: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    """How prompts were answered."""
    broken: Counter[str] = field(default_factory=Counter)
    """Lost, doubled, out of order, not in history, holes, run twice, unanswered."""
    notes: list[str] = field(default_factory=list)
    slowest: float = 0.0
    """Seconds from the first try of a prompt to its answer."""
    events: int = 0

    def blame(self, what: str, note: str) -> None:
        self.broken[what] += 1
        if len(self.notes) < 50:
            self.notes.append(f"{what}: {note}")


class Node:
    """One that is started again whenever it has been ended."""

    def __init__(self, name: str, home: Path, database: str, proxy: LinkProxy) -> None:
        self.name = name
        self.proxy = proxy
        self.server: Server | None = None
        self._home = home
        self._database = database
        self._stack = AsyncExitStack()

    @property
    def url(self) -> str | None:
        return None if self.server is None else self.server.url

    async def start(self) -> None:
        env = {
            "SANDBOX_AGENT_MOCK_STATE": str(self._home / "shared"),
            "SANDBOX_AGENT_STORE": self._database,
            "SANDBOX_AGENT_CLUSTER_TOKEN": TOKEN,
            "SANDBOX_AGENT_NODE_ID": self.name,
            "SANDBOX_AGENT_NODE_URL": self.proxy.url,
            "SANDBOX_AGENT_LEASE_MS": str(LEASE_MS),
        }
        running = running_server(self._home / self.name, "--no-token", env=env)
        while True:
            try:
                server = await self._stack.enter_async_context(running)
                break
            except AssertionError:  # the database is away just now
                await asyncio.sleep(0.2)
                running = running_server(self._home / self.name, "--no-token", env=env)
        self.proxy.target = server.port
        self.server = server

    async def end(self, number: signal.Signals) -> None:
        server, self.server = self.server, None
        if server is not None and server.process.returncode is None:
            server.process.send_signal(number)
            await server.process.wait()

    async def close(self) -> None:
        await self._stack.aclose()


class Chaos:
    def __init__(
        self,
        postgres: PostgresServer,
        home: Path,
        seed: int,
        *,
        nodes: int = 3,
        sessions: int = 4,
        swallows: Callable[[bytes], bool] = lambda data: False,
    ) -> None:
        """`swallows` says which events are lost on their way to watchers: a fault that has to be found."""
        self.verdict = Verdict()
        self.swallows = swallows
        self._postgres = postgres
        self._home = home
        self._random = random.Random(seed)
        self._count = nodes
        self._sessions = sessions
        self._nodes: list[Node] = []

    async def run(self, seconds: float) -> Verdict:
        database = self._postgres.new_database()
        async with AsyncExitStack() as stack:
            for number in range(self._count):
                proxy = await stack.enter_async_context(link_proxy())
                node = Node(f"n{number}", self._home, database, proxy)
                stack.push_async_callback(node.close)
                self._nodes.append(node)
            await asyncio.gather(*(node.start() for node in self._nodes))
            sessions = [await self._new_session() for _ in range(self._sessions)]
            watchers = [Watcher(self, session) for session in sessions for _ in range(2)]
            watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
            end = time.monotonic() + seconds
            writers = [Writer(self, session) for session in sessions]
            writing = [asyncio.create_task(writer.run(end)) for writer in writers]
            await self._break_things(end)
            await asyncio.gather(*writing)
            await self._check(sessions, writers, watchers)
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
        return self.verdict

    async def any_url(self) -> str:
        while True:
            urls = [node.url for node in self._nodes if node.url is not None]
            if urls:
                return self._random.choice(urls)
            await asyncio.sleep(0.05)

    async def _new_session(self) -> str:
        async with httpx.AsyncClient(base_url=await self.any_url(), trust_env=False) as http:
            return await (await open_client(http)).new_session()

    async def _break_things(self, end: float) -> None:
        acts = [self._kill, self._pause, self._stop, self._cut, self._silence, self._restart_database]
        while time.monotonic() < end:
            await asyncio.sleep(self._random.uniform(0.2, 1.5))
            act = self._random.choice(acts)
            self.verdict.faults[act.__name__.strip("_")] += 1
            await act(self._random.choice(self._nodes))

    async def _kill(self, node: Node) -> None:
        await node.end(signal.SIGKILL)
        await asyncio.sleep(self._random.uniform(0, 1.5 * LEASE))
        await node.start()

    async def _stop(self, node: Node) -> None:
        await node.end(signal.SIGTERM)
        await node.start()

    async def _pause(self, node: Node) -> None:
        assert node.server is not None
        os.kill(node.server.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(self._random.uniform(0.2, 2 * LEASE))
        finally:
            os.kill(node.server.pid, signal.SIGCONT)

    async def _cut(self, node: Node) -> None:
        node.proxy.set("refused")
        await asyncio.sleep(self._random.uniform(0, LEASE))
        node.proxy.set("open")

    async def _silence(self, node: Node) -> None:
        node.proxy.set("silent")
        await asyncio.sleep(self._random.uniform(0, 1.5 * LEASE))
        node.proxy.set("open")

    async def _restart_database(self, node: Node) -> None:
        await asyncio.to_thread(self._postgres.stop)
        await asyncio.sleep(self._random.uniform(0, LEASE))
        await asyncio.to_thread(self._postgres.start)

    async def _check(self, sessions: list[str], writers: list[Writer], watchers: list[Watcher]) -> None:
        async with httpx.AsyncClient(base_url=await self.any_url(), trust_env=False) as http:
            reader = await open_client(http)
            for session, writer in zip(sessions, writers, strict=True):
                history = await _history(reader, session)
                self.verdict.events += len(history)
                followers = [watcher for watcher in watchers if watcher.session == session]
                await asyncio.gather(*(watcher.reach(newest_update(history)) for watcher in followers))
                stays = [watcher.stays for watcher in followers]
                for fault in judge(Record(session, history, writer.turns, stays)):
                    self.verdict.blame(*fault)


class Writer:
    def __init__(self, chaos: Chaos, session: str) -> None:
        self.session = session
        self.turns: dict[str, str | None] = {}
        """How each was answered in the end."""
        self._chaos = chaos

    async def run(self, end: float) -> None:
        number = 0
        while time.monotonic() < end:
            number += 1
            await self._turn(f"turn-{number}")
        await self._turn("turn-last")

    async def _turn(self, turn: str) -> None:
        """Send one prompt until it is answered for good."""
        verdict, began = self._chaos.verdict, time.monotonic()
        self.turns[turn] = None
        params = prompt_params(self.session, f"thought {turn}; slow 4", turnId=turn)
        while time.monotonic() - began < _ANSWER:
            try:
                answer = await self._try(params)
            except (httpx.HTTPError, AssertionError):
                await asyncio.sleep(0.05)
                continue
            error = answer.get("error", {})
            kind = str(error.get("data", {}).get("type", "")).rpartition(":")[2] or str(error.get("code", "ok"))
            if "result" in answer or kind == "agent_exited":
                verdict.turns[kind] += 1
                verdict.slowest = max(verdict.slowest, time.monotonic() - began)
                self.turns[turn] = "ok" if "result" in answer else kind
                return
            verdict.turns[f"again after {kind}"] += 1
            await asyncio.sleep(0.1)

    async def _try(self, params: dict[str, Any]) -> dict[str, Any]:
        url = await self._chaos.any_url()
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            client = await open_client(http, deadline=10.0)
            message = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}
            with_deadline = {"X-ACP-Connection-Id": client.id, "Content-Type": "application/json"}
            response = await http.post("/v1/rpc", json=message, headers=with_deadline, timeout=20.0)
            return dict(response.json()) if response.status_code == 200 else {"error": {"data": response.json()}}


class Watcher:
    """Follows a session from node to node, and keeps every message with a sequence that it was told."""

    def __init__(self, chaos: Chaos, session: str) -> None:
        self.session = session
        self.stays: list[Stay] = []
        self._last = 0
        self._chaos = chaos
        self._grew = asyncio.Event()

    async def run(self) -> None:
        while True:
            with suppress(httpx.HTTPError, AssertionError):
                await self._watch(await self._chaos.any_url())
            await asyncio.sleep(0.05)

    async def reach(self, sequence: int) -> None:
        try:
            async with asyncio.timeout(_ANSWER):
                while self._last < sequence:
                    self._grew.clear()
                    await self._grew.wait()
        except TimeoutError:
            self._chaos.verdict.blame("lost", f"{self.session}: a watcher stands at {self._last}, not at {sequence}")

    async def _watch(self, url: str) -> None:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            client = await open_client(http, capabilities=_SEQUENCES, deadline=10.0)
            headers = {"X-ACP-Connection-Id": client.id, "Accept": "text/event-stream"}
            limits = httpx.Timeout(10.0, read=30.0)
            async with http.stream("GET", "/v1/rpc", headers=headers, timeout=limits) as response:
                self.stays.append(Stay(self._last))
                following = asyncio.create_task(self._follow(client))
                try:
                    async for blocks in sse_blocks(response.aiter_bytes()):
                        for block in blocks:
                            self._take(block)
                        if following.done():
                            following.result()
                finally:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)

    async def _follow(self, client: RpcClient) -> None:
        params = {"sessionId": self.session, "after": self._last}
        answer = await client.request("_sandboxagent/session/follow", params)
        assert "result" in answer, answer

    def _take(self, block: bytes) -> None:
        data = next((line for line in block.split(b"\n") if line.startswith(b"data: ")), None)
        if data is None or self._chaos.swallows(data):
            return
        message = msgspec.json.decode(data[6:])
        params = message.get("params") or {}
        sequence = ((params.get("_meta") or {}).get("sandboxagent.dev") or {}).get("sequence")
        if sequence is None:
            return
        self._last = max(self._last, sequence)
        self.stays[-1].told.append((sequence, message))
        self._grew.set()


async def _history(client: RpcClient, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        after = found[-1]["sequence"] if found else 0
        params = {"sessionId": session, "after": after, "limit": 5000}
        answer = await client.request("_sandboxagent/session/events", params)
        if "error" in answer:
            await asyncio.sleep(0.2)
            continue
        found += answer["result"]["events"]
        has_more = answer["result"]["hasMore"]
    return found
