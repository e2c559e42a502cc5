"""A transport for `acp.Connection` over `/v1/rpc`: POST for what goes out, one stream of events for what comes in.

It hides everything that may break on the way. A request whose POST broke is sent again (prompts carry a turnId, so
that they run once) while its answer may also come on the stream; the stream is taken up after the last event that
was read; when the server has forgotten us, the link is opened anew. An answer is handed out only after every event
that preceded it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from sandbox_agent.client.rpc.link import LAST_EVENT, PATH, Link, Message
from sandbox_agent.client.rpc.problems import from_response, from_transport, to_rpc
from sandbox_agent.client.rpc.retry import Backoff
from sandbox_agent.client.rpc.sse import EventParser
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import CLIENT_CALLS, EXTENSION_PREFIX
from sandbox_agent.errors import AgentTimeout, ConnectionLost, SandboxAgentError, UnknownConnection

_SILENCE = 45.0
"""The server sends a heartbeat every 15 s: a stream that is silent for longer is dead."""
_STREAM_ANSWER = 60.0
"""How long the answer to a broken request that must not be repeated may take to come on the stream."""


@dataclass(frozen=True, slots=True)
class _Outgoing:
    message: Message
    task: asyncio.Task[None]


class RpcTransport:
    """`room` is awaited before more is read; `sift` may look at each message and may swallow it."""

    def __init__(
        self,
        link: Link,
        *,
        retry_for: float,
        room: Callable[[], Awaitable[None]],
        sift: Callable[[Message], Message | None],
    ) -> None:
        self.failure: SandboxAgentError | None = None
        self._link = link
        self._retry_for = retry_for
        self._room = room
        self._sift = sift
        self._inbox: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._requests: dict[Any, _Outgoing] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def send(self, message: Message) -> None:
        """Requests go out in the background; anything else has been delivered when this returns."""
        if self._is_over:
            if "method" not in message:
                return  # an answer that nobody waits for any more
            raise ConnectionError("connection closed")
        if "id" not in message or "method" not in message:
            await self._tell(message)
        elif message["method"] == "initialize":
            self._spawn(self._open(message))
        else:
            self._start_request(message)

    async def receive(self) -> Message | None:
        while not self._inbox:
            if self._is_over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._inbox.popleft()

    async def close(self) -> None:
        self._end(None)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._link.close()

    async def _open(self, message: Message) -> None:
        try:
            self._take(await self._link.open(message))
        except SandboxAgentError as error:
            self._take_failure(message, error)
            return
        self._spawn(self._read())

    async def _request(self, message: Message) -> None:
        backoff = Backoff(self._retry_for)
        while True:
            epoch = self._link.epoch
            try:
                response = await self._link.post(message, timeout=None)
            except AgentTimeout:
                return  # the answer comes on the stream
            except UnknownConnection:
                if not await self._revive(epoch, message):
                    return
                continue
            except httpx.HTTPError as error:
                if not _was_sent(error) or _is_repeatable(message["method"]):
                    failure: SandboxAgentError = from_transport(error, self._link.url)
                else:
                    await self._await_on_stream(message, epoch)
                    return
            except SandboxAgentError as error:
                if not error.retryable or error.status not in {429, 503}:
                    self._take_failure(message, error)
                    return
                failure = error
            else:
                await self._link.reached(epoch, int(response.headers.get(LAST_EVENT, 0)))
                self._take(msgspec.json.decode(response.content))
                return
            if not await self._pause(backoff):
                self._take_failure(message, failure)
                return

    async def _tell(self, message: Message) -> None:
        """Deliver a notification or an answer. Raises what made it impossible."""
        backoff = Backoff(self._retry_for)
        while True:
            epoch = self._link.epoch
            try:
                await self._link.post(message, timeout=30.0)
                return
            except UnknownConnection:
                await self._link.reopen(epoch)
                if "method" not in message:
                    return  # an answer to a question that died with the old connection; it is asked again
                continue
            except httpx.HTTPError as error:
                failure: SandboxAgentError = from_transport(error, self._link.url)
            except SandboxAgentError as error:
                if error.status not in {429, 503}:
                    raise
                failure = error
            if not await self._pause(backoff):
                raise failure

    async def _read(self) -> None:
        """Keep the stream open until the transport is closed."""
        backoff = Backoff(self._retry_for)
        while not self._is_over:
            epoch = self._link.epoch
            failure = ConnectionLost(f"the stream of {self._link.url} ended again and again")
            try:
                await self._read_once(epoch, backoff)
            except UnknownConnection:
                try:
                    await self._link.reopen(epoch)
                except SandboxAgentError as error:
                    self._end(error)
                    return
                continue
            except httpx.HTTPError as error:
                failure = from_transport(error, self._link.url)
                if isinstance(error, httpx.ReadTimeout):
                    self.renew_requests()
            except SandboxAgentError as error:
                if error.status not in {409, 429, 503}:
                    self._end(error)
                    return
            if not await self._pause(backoff):
                self._end(failure)
                return

    async def _read_once(self, epoch: int, backoff: Backoff) -> None:
        link = self._link
        headers = {**link.headers, "Accept": "text/event-stream", "Last-Event-ID": str(link.last_event)}
        limits = httpx.Timeout(_SILENCE, connect=10.0, pool=None)
        async with link.http.stream("GET", PATH, headers=headers, timeout=limits) as response:
            if response.status_code >= 400:
                await response.aread()
                raise from_response(response)
            backoff.reset()
            parser = EventParser()
            async for chunk in response.aiter_raw():
                if link.epoch != epoch:
                    return
                last = link.last_event
                for event in parser.feed(chunk):
                    if event.id is None or event.id > last:
                        last = event.id or last
                        message = read_json(event.data)
                        if isinstance(message, dict):
                            self._take(message)
                if last != link.last_event:
                    link.moved_to(last)
                    await self._room()

    def _take(self, message: Message) -> None:
        sifted = self._sift(message)
        if sifted is None:
            return
        outgoing = self._requests.pop(sifted.get("id"), None) if "method" not in sifted else None
        if outgoing is not None and outgoing.task is not asyncio.current_task():
            outgoing.task.cancel()  # its answer came on the stream
        self._inbox.append(sifted)
        self._arrived.set()

    def _take_failure(self, message: Message, error: SandboxAgentError) -> None:
        self._take({"jsonrpc": "2.0", "id": message["id"], "error": to_rpc(error)})

    async def _revive(self, epoch: int, message: Message) -> bool:
        try:
            await self._link.reopen(epoch)
        except SandboxAgentError as error:
            self._take_failure(message, error)
            return False
        return True

    async def _await_on_stream(self, message: Message, epoch: int) -> None:
        """It may have run, so it is not sent again; if it did, its answer comes, and this task is cancelled."""
        try:
            async with asyncio.timeout(_STREAM_ANSWER):
                await self._link.reached(epoch, 1 << 62)
        except TimeoutError:
            pass
        lost = f"the connection broke during {message['method']}: it may or may not have been done"
        self._take_failure(message, ConnectionLost(lost))

    def renew_requests(self) -> None:
        """The network went silent, or the connection is another: what was posted before may never be answered."""
        for outgoing in list(self._requests.values()):
            if _is_repeatable(outgoing.message["method"]):
                outgoing.task.cancel()
                self._start_request(outgoing.message)

    def _start_request(self, message: Message) -> None:
        self._requests[message["id"]] = _Outgoing(message, self._spawn(self._request(message)))

    async def _pause(self, backoff: Backoff) -> bool:
        wait = backoff.next_wait()
        if wait is None or self._is_over:
            return False
        await asyncio.sleep(wait)
        return not self._is_over

    def _end(self, error: SandboxAgentError | None) -> None:
        self.failure = self.failure or error
        self._is_over = True
        self._arrived.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _was_sent(error: httpx.HTTPError) -> bool:
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _is_repeatable(method: str) -> bool:
    """What may be sent twice. A session made twice leaves an empty one behind, which harms nobody."""
    return method in CLIENT_CALLS or method.startswith(EXTENSION_PREFIX)
