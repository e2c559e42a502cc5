"""A hub in this process with the built-in agent, and a door called without any server in between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.agents import Catalog, CustomAgent
from sandbox_agent.files import FileService
from sandbox_agent.http.asgi.messages import Message, Receive, Scope, Send
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store import MemoryStore
from support.limits import file_limits, hub_options_under
from support.store_words import KEEP_ALL


@asynccontextmanager
async def hub_here(
    home: Path, kind: type[Hub] = Hub, *, agents: Mapping[str, CustomAgent] | None = None
) -> AsyncIterator[Hub]:
    store = MemoryStore(retention=KEEP_ALL)
    await store.open()
    mock = CustomAgent(env={"SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state")})
    catalog = Catalog({"mock": mock, **(agents or {})})
    files = FileService((), Path.cwd(), file_limits(), data_dir=None)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    hub = kind(store, catalog, environ=environ, options=hub_options_under(home), files=files)
    try:
        yield hub
    finally:
        await hub.close()
        await store.close()


class Exchange:
    """One call of a door. `sent` holds what it sent; while `gate` is clear, nothing is taken from it."""

    def __init__(
        self, door: Any, scope: Scope, *incoming: Message, log: list[tuple[str, Message]] | None = None
    ) -> None:
        self.sent: list[Message] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._log = log
        self._scope = scope
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._changed = asyncio.Event()
        for message in incoming:
            self._incoming.put_nowait(message)
        receive: Receive = self._incoming.get
        send: Send = self._send
        self.task = asyncio.create_task(door(scope, receive, send))

    def put(self, message: Message) -> None:
        self._incoming.put_nowait(message)

    async def _send(self, message: Message) -> None:
        await self.gate.wait()
        self.sent.append(message)
        if self._log is not None:
            self._log.append((self._scope["method"], message))
        self._changed.set()

    async def until(self, found: str) -> None:
        """Return when something sent contains `found`."""
        async with asyncio.timeout(30):
            while not any(found in str(message) for message in self.sent):
                self._changed.clear()
                await self._changed.wait()

    async def done(self) -> list[Message]:
        async with asyncio.timeout(30):
            await self.task
        return self.sent


def http_scope(method: str, path: str, query: str = "", **headers: str) -> Scope:
    every = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": every}


def posted(message: Any) -> Message:
    return {"type": "http.request", "body": msgspec.json.encode(message), "more_body": False}


def socket_scope(query: str = "") -> Scope:
    return {"type": "websocket", "path": "/acp", "query_string": query.encode(), "headers": [], "subprotocols": []}


def framed(message: Any) -> Message:
    return {"type": "websocket.receive", "text": msgspec.json.encode(message).decode()}
