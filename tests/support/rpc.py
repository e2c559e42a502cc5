"""A small client of `/v1/rpc` for tests: requests, and a reader that collects the stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import msgspec

DEADLINE = 45.0
CONNECTION = "X-ACP-Connection-Id"
JSON = {"Content-Type": "application/json"}

Message = dict[str, Any]


class Events:
    """What came on a stream: ids and messages in order."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.messages: list[Message] = []
        self.comments: list[str] = []
        self.is_over = False
        self._changed = asyncio.Event()

    def add(self, event_id: int, message: Message) -> None:
        self.ids.append(event_id)
        self.messages.append(message)

    def notify(self) -> None:
        self._changed.set()

    async def wait_for(
        self, found: Callable[[Message], object], *, after: int = 0, deadline: float = DEADLINE
    ) -> Message:
        """The first message from position `after` on for which `found` is true."""
        position = after
        async with asyncio.timeout(deadline):
            while True:
                self._changed.clear()
                for message in self.messages[position:]:
                    position += 1
                    if found(message):
                        return message
                await self._changed.wait()

    async def wait_until(self, done: Callable[[Events], object], *, deadline: float = DEADLINE) -> None:
        async with asyncio.timeout(deadline):
            while True:
                self._changed.clear()
                if done(self):
                    return
                await self._changed.wait()
                await asyncio.sleep(len(self.messages) / 500_000)  # looks at all of them: not for each of a flood

    def updates(self, kind: str | None = None) -> list[Message]:
        found = [m["params"]["update"] for m in self.messages if m.get("method") == "session/update"]
        return [u for u in found if kind is None or u["sessionUpdate"] == kind]

    def text(self) -> str:
        return "".join(u["content"].get("text", "") for u in self.updates("agent_message_chunk"))


class RpcClient:
    def __init__(
        self, http: httpx.AsyncClient, connection_id: str, initialized: Message, *, deadline: float = DEADLINE
    ) -> None:
        self.http = http
        self.id = connection_id
        self.initialized = initialized
        self._deadline = deadline
        self._ids = count(1)

    async def post(self, message: Any, **headers: str) -> httpx.Response:
        content = message if isinstance(message, bytes) else msgspec.json.encode(message)
        every = {CONNECTION: self.id, **JSON, **headers}
        return await self.http.post("/v1/rpc", content=content, headers=every, timeout=self._deadline)

    async def request(self, method: str, params: Any = None, *, id: Any = None) -> Message:  # noqa: A002
        """The whole JSON-RPC answer."""
        key = next(self._ids) if id is None else id
        response = await self.post({"jsonrpc": "2.0", "id": key, "method": method, "params": params or {}})
        assert response.status_code == 200, response.text
        answer: Message = response.json()
        assert answer["id"] == key
        return answer

    async def call(self, method: str, params: Any = None) -> Any:
        """The result; fails the test on an error answer."""
        answer = await self.request(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def notify(self, method: str, params: Any) -> None:
        response = await self.post({"jsonrpc": "2.0", "method": method, "params": params})
        assert response.status_code == 202, response.text

    async def answer(self, request: Message, result: Any) -> None:
        response = await self.post({"jsonrpc": "2.0", "id": request["id"], "result": result})
        assert response.status_code == 202, response.text

    async def new_session(self, cwd: str = "/tmp", **meta: Any) -> str:
        params: dict[str, Any] = {"cwd": cwd, "mcpServers": []}
        if meta:
            params["_meta"] = {"sandboxagent.dev": meta}
        return str((await self.call("session/new", params))["sessionId"])

    async def prompt(self, session: str, text: str, **meta: Any) -> Message:
        """The whole answer to a prompt."""
        return await self.request("session/prompt", prompt_params(session, text, **meta))

    async def close(self) -> None:
        response = await self.http.delete("/v1/rpc", headers={CONNECTION: self.id})
        assert response.status_code == 204

    @asynccontextmanager
    async def stream(self, last_event_id: int | None = None) -> AsyncIterator[Events]:
        """Read the stream in the background for as long as the block lasts."""
        events = Events()
        opened = asyncio.Event()
        task = asyncio.create_task(self._read(events, opened, last_event_id))
        try:
            async with asyncio.timeout(DEADLINE):
                await opened.wait()
            yield events
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @contextlib.asynccontextmanager
    async def _opened(self, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        """The server may not have noticed yet that the reader before us has left (409)."""
        end = asyncio.get_running_loop().time() + 10.0
        while True:
            async with self.http.stream("GET", "/v1/rpc", headers=headers, timeout=None) as response:
                if response.status_code != 409 or asyncio.get_running_loop().time() > end:
                    yield response
                    return
            await asyncio.sleep(0.02)

    async def _read(self, events: Events, opened: asyncio.Event, last_event_id: int | None) -> None:
        headers = {CONNECTION: self.id, "Accept": "text/event-stream"}
        if last_event_id is not None:
            headers["Last-Event-ID"] = str(last_event_id)
        try:
            async with self._opened(headers) as response:
                assert response.status_code == 200, await response.aread()
                opened.set()
                async for block in sse_blocks(response.aiter_bytes()):
                    _take(block, events)
                    events.notify()
        except httpx.TransportError:
            pass  # the server was killed: the test looks at what came before
        finally:
            events.is_over = True
            events.notify()
            opened.set()


async def sse_blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The events that each chunk completes, as lists, so that a burst is handled at once."""
    rest = b""
    async for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        if blocks:
            yield blocks


def _take(blocks: list[bytes], events: Events) -> None:
    for block in blocks:
        if block.startswith(b":"):
            events.comments.append(block.decode())
            continue
        name, event_id, data = block.split(b"\n", 2)
        assert name == b"event: message", block[:100]
        events.add(int(event_id.removeprefix(b"id: ")), msgspec.json.decode(data.removeprefix(b"data: ")))


def prompt_params(session: str, text: str, **meta: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    if meta:
        params["_meta"] = {"sandboxagent.dev": meta}
    return params


@asynccontextmanager
async def connected(
    url: str,
    agent: str = "mock",
    *,
    capabilities: dict[str, Any] | None = None,
    version: int = 1,
    token: str | None = None,
    deadline: float = DEADLINE,
) -> AsyncIterator[RpcClient]:
    """A client whose connection is open. Leaving the block drops the sockets, not the connection."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, limits=limits, headers=headers, trust_env=False) as http:
        yield await open_client(http, agent, capabilities=capabilities, version=version, deadline=deadline)


async def open_client(
    http: httpx.AsyncClient,
    agent: str = "mock",
    *,
    capabilities: dict[str, Any] | None = None,
    version: int = 1,
    deadline: float = DEADLINE,
) -> RpcClient:
    params = {**initialize_params(version, capabilities), "_meta": {"sandboxagent.dev": {"agent": agent}}}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    response = await http.post("/v1/rpc", json=message, timeout=deadline)
    assert response.status_code == 200, response.text
    return RpcClient(http, response.headers[CONNECTION], response.json()["result"], deadline=deadline)


def initialize_params(version: int, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a client says first in this version of ACP."""
    if version == 1:
        return {"protocolVersion": 1, "clientCapabilities": capabilities or {}}
    info = {"name": "tests", "version": "1"}
    return {"protocolVersion": version, "info": info, "capabilities": capabilities or {}}


def is_permission(message: Message) -> bool:
    return message.get("method") == "session/request_permission"


def option_of_kind(request: Message, kind: str) -> dict[str, Any]:
    """The outcome that selects the offered option of this kind."""
    options = request["params"]["options"]
    chosen = next(option["optionId"] for option in options if option["kind"] == kind)
    return {"outcome": {"outcome": "selected", "optionId": chosen}}
