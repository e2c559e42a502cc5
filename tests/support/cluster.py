"""Several real nodes on one real PostgreSQL, whose agents keep their sessions in one place, as on a shared volume."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from support.postgres import PostgresServer
from support.rpc import Events, RpcClient, connected, prompt_params
from support.server import Server, running_server

TOKEN = "the-secret-of-the-cluster"
LEASE_MS = 4000


class Nodes:
    """Starts nodes and opens clients at them; all end with the block."""

    def __init__(self, stack: AsyncExitStack, home: Path, database: str) -> None:
        self.database = database
        self._stack = stack
        self._home = home

    @property
    def database_name(self) -> str:
        return self.database.rpartition("/")[2]

    async def start(self, name: str, *flags: str, port: int = 0, **settings: Any) -> Server:
        """Started again under the same name, it is the same node."""
        env = {
            "SANDBOX_AGENT_MOCK_STATE": str(self._home / "shared"),
            "SANDBOX_AGENT_STORE": self.database,
            "SANDBOX_AGENT_CLUSTER_TOKEN": TOKEN,
            "SANDBOX_AGENT_NODE_ID": name,
            "SANDBOX_AGENT_LEASE_MS": str(LEASE_MS),
            **{f"SANDBOX_AGENT_{key.upper()}": str(value) for key, value in settings.items()},
        }
        access = () if "token" in settings else ("--no-token",)
        running = running_server(self._home / name, *access, *flags, env=env, port=port)
        return await self._stack.enter_async_context(running)

    async def client(self, node: Server, **options: Any) -> RpcClient:
        return await self._stack.enter_async_context(connected(node.url, **options))

    async def stream(self, client: RpcClient) -> Events:
        return await self._stack.enter_async_context(client.stream())


@asynccontextmanager
async def cluster(postgres: PostgresServer, home: Path) -> AsyncIterator[Nodes]:
    async with AsyncExitStack() as stack:
        yield Nodes(stack, home, postgres.new_database())


async def prompt_later(client: RpcClient, session: str, text: str, **meta: Any) -> None:
    """The answer comes on the stream."""
    params = prompt_params(session, text, **meta)
    message = {"jsonrpc": "2.0", "id": text, "method": "session/prompt", "params": params}
    response = await client.post(message, Prefer="respond-async")
    assert response.status_code == 202, response.text


def chunks(events: Events) -> list[str]:
    return [update["content"]["text"].strip() for update in events.updates("agent_message_chunk")]


async def history(client: RpcClient, session: str) -> list[dict[str, Any]]:
    """All entries, checked to be numbered without holes."""
    found: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        params = {"sessionId": session, "after": len(found), "limit": 5000}
        page = await client.call("_sandboxagent/session/events", params)
        found += page["events"]
        has_more = page["hasMore"]
    assert [entry["sequence"] for entry in found] == list(range(1, len(found) + 1))
    return found


async def until_said(client: RpcClient, session: str, text: str, *, deadline: float = 20.0) -> None:
    """Until a session's history has this in it: what is prompted at another node from then on comes after it."""
    async with asyncio.timeout(deadline):
        while not any(text in str(entry["envelope"]) for entry in await history(client, session)):
            await asyncio.sleep(0.02)


def chunks_kept(entries: list[dict[str, Any]]) -> list[str]:
    updates = [entry["envelope"].get("params", {}).get("update", {}) for entry in entries]
    return [u["content"]["text"].strip() for u in updates if u.get("sessionUpdate") == "agent_message_chunk"]


async def until_answered(client: RpcClient, session: str, text: str, *, deadline: float = 45.0) -> None:
    """Prompt until a turn has run, as a client does that is told to try again."""
    async with asyncio.timeout(deadline):
        while "result" not in await client.prompt(session, text):
            await asyncio.sleep(0.05)
