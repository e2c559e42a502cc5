"""One client interface over every door, so that one suite can hold them all to the same behaviour."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any, ClassVar
from uuid import uuid4

import httpx
import msgspec
import websockets
from websockets.asyncio.client import ClientConnection, connect

from support import rpc
from support.rpc import DEADLINE, Events, Message, prompt_params, sse_blocks

META = "sandboxagent.dev"


def initialize_params(agent: str, version: int = 1) -> dict[str, Any]:
    return {**rpc.initialize_params(version), "_meta": {META: {"agent": agent}}}


class DoorClient:
    """A client of one door: what it gets is in `events`, in order and without doubles."""

    door: ClassVar[str]

    def __init__(self, url: str) -> None:
        self.url = url
        self.events = Events()
        self.initialized: Message = {}
        self.version = 1
        """The version of ACP that it asks for."""
        self._ids = count(1)
        self._waiting: dict[Any, asyncio.Future[Message]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, agent: str = "mock") -> None:
        """Initialize, and read what comes."""
        raise NotImplementedError

    async def send(self, message: Message) -> None:
        raise NotImplementedError

    async def send_raw(self, content: bytes) -> int:
        """Send bytes as a message; gives the HTTP status or the close code that came back."""
        raise NotImplementedError

    async def drop(self) -> None:
        """Lose every socket, as a network would."""
        raise NotImplementedError

    async def reattach(self) -> None:
        """Come back after `drop` and go on where this client stopped."""
        raise NotImplementedError

    async def stop_reading(self) -> None:
        """Keep the connection and read nothing more."""
        await self.drop()

    async def close(self) -> None:
        """End the connection in good order."""
        raise NotImplementedError

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, method: str, params: Any, *, id: Any = None) -> asyncio.Future[Message]:  # noqa: A002
        """Send a request; the future gets the whole answer."""
        key = next(self._ids) if id is None else id
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        self._spawn(self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params}))
        return future

    async def request(self, method: str, params: Any, *, id: Any = None) -> Message:  # noqa: A002
        async with asyncio.timeout(DEADLINE):
            return await self.start(method, params, id=id)

    async def call(self, method: str, params: Any) -> Any:
        answer = await self.request(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def notify(self, method: str, params: Any) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def answer(self, request: Message, result: Any) -> None:
        await self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def new_session(self, cwd: str = "/tmp") -> str:
        session = str((await self.call("session/new", {"cwd": cwd, "mcpServers": []}))["sessionId"])
        await self.know(session)
        return session

    async def load(self, session: str) -> None:
        await self.know(session)
        await self.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})

    async def prompt(self, session: str, text: str) -> Message:
        return await self.request("session/prompt", prompt_params(session, text))

    def start_prompt(self, session: str, text: str) -> asyncio.Future[Message]:
        return self.start("session/prompt", prompt_params(session, text))

    async def know(self, session: str) -> None:
        """Called before anything of a session can come."""

    def took(self, message: Message) -> None:
        """Sort an incoming message: answers to their futures, all else to `events`."""
        if "method" in message:
            self.events.add(len(self.events.ids) + 1, message)
            self.events.notify()
            return
        future = self._waiting.pop(message["id"], None)
        if future is not None and not future.done():
            future.set_result(message)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(AssertionError(f"transport failed: {task.exception()!r}"))


class _HttpClient(DoorClient):
    """POST, streams by GET, DELETE: each door adds its path and headers."""

    path: str
    closed_with: ClassVar[int]

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._http = httpx.AsyncClient(
            base_url=url, limits=httpx.Limits(max_connections=None), trust_env=False, timeout=DEADLINE
        )
        self._headers: dict[str, str] = {}
        self._streams: dict[str | None, asyncio.Task[None]] = {}
        self._last: dict[str | None, int] = {}

    async def send(self, message: Message) -> None:
        timeout = None if message.get("method") == "session/prompt" else DEADLINE
        headers = {**self._headers, "Content-Type": "application/json", "Accept": "application/json"}
        response = await self._http.post(
            self.path, content=msgspec.json.encode(message), headers=headers, timeout=timeout
        )
        assert response.status_code in {200, 202}, (response.status_code, response.text)
        if response.content:
            self.took(response.json())

    async def send_raw(self, content: bytes) -> int:
        headers = {**self._headers, "Content-Type": "application/json"}
        return (await self._http.post(self.path, content=content, headers=headers)).status_code

    async def follow(self, session: str | None = None, *, last: int | None = None) -> None:
        opened = asyncio.Event()
        task = self._spawn(self._read(session, last, opened))
        self._streams[session] = task
        async with asyncio.timeout(DEADLINE):
            await opened.wait()

    async def _read(self, session: str | None, last: int | None, opened: asyncio.Event) -> None:
        headers = {**self._headers, "Accept": "text/event-stream"}
        if session is not None:
            headers["Acp-Session-Id"] = session
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        async with self._http.stream("GET", self.path, headers=headers, timeout=None) as response:
            assert response.status_code == 200, await response.aread()
            opened.set()
            async for blocks in sse_blocks(response.aiter_bytes()):
                for block in blocks:
                    self._take(session, block)

    def _take(self, session: str | None, block: bytes) -> None:
        if block.startswith(b":"):
            return
        _, event_id, data = block.split(b"\n", 2)
        number = int(event_id.removeprefix(b"id: "))
        assert number == self._last.get(session, 0) + 1, f"event {number} after {self._last.get(session, 0)}"
        self._last[session] = number
        self.took(msgspec.json.decode(data.removeprefix(b"data: ")))

    async def drop(self) -> None:
        gone = [*self._tasks]
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)

    async def reattach(self) -> None:
        for session in list(self._streams):
            await self.follow(session, last=self._last.get(session, 0))

    async def close(self) -> None:
        response = await self._http.delete(self.path, headers=self._headers)
        assert response.status_code == self.closed_with, response.text

    async def leave(self) -> None:
        await super().leave()
        await self._http.aclose()


class RpcDoorClient(_HttpClient):
    door = "rpc"
    path = "/v1/rpc"
    closed_with = 204

    async def open(self, agent: str = "mock") -> None:
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params(agent, self.version)}
        response = await self._http.post(self.path, json=message)
        assert response.status_code == 200, response.text
        self.initialized = response.json()["result"]
        self._headers["X-ACP-Connection-Id"] = response.headers["X-ACP-Connection-Id"]
        await self.follow()


class AcpDoorClient(_HttpClient):
    door = "acp-http"
    path = "/acp"
    closed_with = 202

    async def open(self, agent: str = "mock") -> None:
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params(agent, self.version)}
        response = await self._http.post(self.path, json=message)
        assert response.status_code == 200, response.text
        self.initialized = response.json()["result"]
        self._headers["Acp-Connection-Id"] = response.headers["Acp-Connection-Id"]
        await self.follow()

    async def know(self, session: str) -> None:
        if session not in self._streams:
            await self.follow(session)


class CompatDoorClient(_HttpClient):
    door = "compat"
    closed_with = 204

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.server_id = f"test-{uuid4().hex}"
        self.path = f"/v1/acp/{self.server_id}"

    async def open(self, agent: str = "mock") -> None:
        await self.follow()  # as its own client does: before anybody has opened the server
        self.path += f"?agent={agent}"
        self.initialized = await self.call("initialize", rpc.initialize_params(self.version))
        self.path = self.path.partition("?")[0]


class SocketDoorClient(DoorClient):
    door = "acp-ws"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._socket: ClientConnection | None = None
        self._frames = 0
        self.connection_id = ""

    @property
    def socket(self) -> ClientConnection:
        assert self._socket is not None
        return self._socket

    async def open(self, agent: str = "mock") -> None:
        await self._connect({})
        self.connection_id = self._response_header("Acp-Connection-Id")
        self._spawn(self._read())
        self.initialized = await self.call("initialize", initialize_params(agent, self.version))

    async def _connect(self, headers: dict[str, str]) -> None:
        address = self.url.replace("http://", "ws://") + "/acp"
        self._socket = await connect(address, additional_headers=headers, max_size=None, proxy=None, ping_interval=None)

    def _response_header(self, name: str) -> str:
        assert self.socket.response is not None
        return self.socket.response.headers[name]

    async def send(self, message: Message) -> None:
        await self.socket.send(msgspec.json.encode(message).decode())

    async def send_raw(self, content: bytes) -> int:
        await self.socket.send(content)
        async with asyncio.timeout(DEADLINE):
            await self.socket.wait_closed()
        return self.socket.close_code or 0

    async def _read(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for frame in self.socket:
                self._frames += 1
                self.took(msgspec.json.decode(frame))

    async def drop(self) -> None:
        self.socket.transport.abort()
        await self.socket.wait_closed()

    async def stop_reading(self) -> None:
        self.socket.transport.pause_reading()

    async def reattach(self) -> None:
        await self._connect({"Acp-Connection-Id": self.connection_id, "Last-Event-ID": str(self._frames)})
        self._spawn(self._read())

    async def close(self) -> None:
        await self.socket.close()

    async def leave(self) -> None:
        await super().leave()
        if self._socket is not None:
            await self._socket.close()


DOORS: dict[str, Callable[[str], DoorClient]] = {
    "rpc": RpcDoorClient,
    "acp-http": AcpDoorClient,
    "acp-ws": SocketDoorClient,
    "compat": CompatDoorClient,
}


@asynccontextmanager
async def client_at(door: str, url: str, agent: str = "mock", *, version: int = 1) -> AsyncIterator[Any]:
    """A client whose handshake is done."""
    client = DOORS[door](url)
    client.version = version
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.leave)
        await client.open(agent)
        yield client
