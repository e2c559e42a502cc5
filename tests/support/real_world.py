"""One real agent behind a real server, with a home of its own and the loopback LLM as its only model."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec

from sandbox_agent.agents import Catalog
from sandbox_agent.core.ids import AgentId
from support.fake_llm import FakeLLM, Seen
from support.proc_table import memory_of, parent_of, processes_at_home
from support.real_agents import prepare_agent
from support.rpc import Events, RpcClient, connected
from support.server import Server, running_server

DEADLINE = 90.0
_numbers = count(1)
_MINUTE = re.compile(r"^session-[\dT-]{16}-")


class RealWorld:
    """Start it, then open clients. It can be stopped and started again on the same data."""

    def __init__(self, agent: str, llm: FakeLLM, cache: Path, root: Path) -> None:
        self.agent = agent
        self.llm = llm
        self.home = root / "home"
        self.work = root / "work"
        self._root = root
        self._cache = cache
        self._running = AsyncExitStack()
        self._server: Server | None = None
        self.work.mkdir(parents=True)

    @property
    def server(self) -> Server:
        assert self._server is not None
        return self._server

    async def start(self) -> None:
        data = self._root / "server" / "data"
        data.mkdir(parents=True, exist_ok=True)
        if not (data / "agents").exists():
            (data / "agents").symlink_to(self._cache / "agents")
        env = prepare_agent(self.agent, self.home, self.llm.url)
        config = f"[agents.{self.agent}.env]\n" + "".join(f"{name} = {_quoted(env[name])}\n" for name in env)
        # nothing but what is in the cache may be used: a download would fail at once
        nowhere = {"SANDBOX_AGENT_ACP_REGISTRY_URL": "http://127.0.0.1:9/", "SANDBOX_AGENT_REQUIRE_PREINSTALL": "1"}
        running = running_server(self._root / "server", "--no-token", config=config, env=nowhere)
        self._server = await self._running.enter_async_context(running)

    async def close(self) -> None:
        await self._running.aclose()

    async def restart(self) -> None:
        await self.close()
        self.let_a_minute_pass()
        await self.start()

    def let_a_minute_pass(self) -> None:
        """gemini names session files by the minute: a load in the same minute overwrites what it should read."""
        for chat in self.home.glob(".gemini/tmp/*/chats/session-*"):
            earlier = _MINUTE.sub("session-2020-01-01T00-00-", chat.name)
            chat.rename(chat.with_name(earlier))

    @asynccontextmanager
    async def client(self, version: int = 1) -> AsyncIterator[RpcClient]:
        async with connected(self.server.url, self.agent, version=version, deadline=DEADLINE) as client:
            yield client

    async def new_session(self, client: RpcClient) -> str:
        return await client.new_session(str(self.work))

    def processes(self) -> list[int]:
        return processes_at_home(self.home)

    def agent_pid(self) -> int:
        """The process that the server talks to."""
        (pid,) = (pid for pid in self.processes() if parent_of(pid) == self.server.pid)
        return pid

    def groups(self) -> set[int]:
        """The process groups that the server has started for the agent."""
        return {os.getpgid(pid) for pid in self.processes()}

    def memory(self) -> int:
        return memory_of(self.processes())

    def word(self) -> str:
        """A word that no other prompt of this run contains."""
        return f"zebra{os.getpid()}x{next(_numbers)}"

    def asked(self, word: str) -> list[Seen]:
        """The requests to the model, with tools on offer, whose newest words contain `word`."""
        return [seen for seen in self.llm.seen if word in seen.turn.text and seen.turn.tools]


def says(word: str) -> Callable[[Events], bool]:
    return lambda events: word in events.text()


async def reply_to(client: RpcClient, events: Events, session: str, text: str) -> str:
    """What the agent says in a turn of its own, once the turn is over."""
    before = len(events.text())
    answer = await client.prompt(session, text)
    assert answer["result"]["stopReason"] == "end_turn", answer
    await events.wait_until(lambda e: "loopback model" in e.text()[before:], deadline=DEADLINE)
    return events.text()[before:]


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def real_cache() -> Path:
    return Path(os.environ["SANDBOX_AGENT_REAL_AGENTS"]).absolute()


async def install_real(agent: str) -> None:
    """By our own installer, unless it is in the cache already."""
    catalog = Catalog({}, data_dir=real_cache(), env=os.environ)
    await catalog.install(AgentId(agent))
