"""The logical connection to `/v1/rpc`: opened with `initialize`, and opened anew when the server no longer knows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import msgspec

from sandbox_agent.client.rpc.problems import from_response, from_transport
from sandbox_agent.client.rpc.retry import Backoff
from sandbox_agent.errors import ConnectionLost, SandboxAgentError, UnknownConnection

PATH = "/v1/rpc"
CONNECTION = "X-ACP-Connection-Id"
LAST_EVENT = "X-ACP-Last-Event-Id"
_JSON = {"Content-Type": "application/json", "Accept": "application/json"}
_OPEN_TIMEOUT = 600.0
"""An agent may be installed on the way."""

Message = dict[str, Any]


class Link:
    """`epoch` counts the connections that the server gave us; event ids start anew with each."""

    def __init__(self, http: httpx.AsyncClient, *, retry_for: float) -> None:
        self.http = http
        self.epoch = 0
        self.last_event = 0
        self.is_closed = False
        self.on_reopened: Callable[[], Awaitable[None]] | None = None
        self._id: str | None = None
        self._retry_for = retry_for
        self._initialize: Message = {}
        self._reopening: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    @property
    def url(self) -> str:
        return str(self.http.base_url).rstrip("/")

    @property
    def headers(self) -> dict[str, str]:
        return {CONNECTION: self._id} if self._id is not None else {}

    async def open(self, initialize: Message) -> Message:
        """The answer to `initialize`. Raises ConnectionLost when no server is there, without trying again."""
        self._initialize = initialize
        try:
            return await self._begin()
        except httpx.HTTPError as error:
            raise from_transport(error, self.url) from error

    async def reopen(self, stale: int) -> None:
        """Return when the connection that replaces epoch `stale` is there and its sessions are attached again."""
        if self.epoch != stale and self._reopening is None:
            return
        if self._reopening is None:
            self._reopening = asyncio.create_task(self._open_again(), name="sandbox-agent-reopen")
            self._reopening.add_done_callback(self._reopened)
        await asyncio.shield(self._reopening)

    async def post(self, message: Message, *, timeout: float | None) -> httpx.Response:
        """One try. Raises httpx.HTTPError when it broke, UnknownConnection when the server has forgotten us."""
        return await self._post(message, {**_JSON, **self.headers}, timeout)

    async def call(self, method: str, params: Message) -> Message:
        """A request of the link's own: the result. Its updates are not waited for."""
        message = {"jsonrpc": "2.0", "id": f"link-{self.epoch}-{method}", "method": method, "params": params}
        answer: Message = msgspec.json.decode((await self.post(message, timeout=_OPEN_TIMEOUT)).content)
        return answer

    def moved_to(self, event_id: int) -> None:
        self.last_event = event_id
        self._wake()

    async def reached(self, epoch: int, event_id: int) -> None:
        """Return when every event up to this one has been taken in; at once if that epoch is over."""
        while self.epoch == epoch and self.last_event < event_id and not self.is_closed:
            await self._moved.wait()

    async def close(self) -> None:
        """Tell the server that we are gone, if it can be told."""
        self.is_closed = True
        self._wake()
        if self._reopening is not None:
            self._reopening.cancel()
        if self._id is not None:
            try:
                await self.http.delete(PATH, headers=self.headers, timeout=5.0)
            except httpx.HTTPError:
                pass

    async def _post(self, message: Message, headers: dict[str, str], timeout: float | None) -> httpx.Response:
        limits = httpx.Timeout(timeout, connect=10.0, pool=None)
        response = await self.http.post(PATH, content=msgspec.json.encode(message), headers=headers, timeout=limits)
        if response.status_code >= 400:
            raise from_response(response)
        return response

    async def _begin(self) -> Message:
        response = await self._post(self._initialize, _JSON, _OPEN_TIMEOUT)
        self._id = response.headers[CONNECTION]
        self.epoch += 1
        self.last_event = 0
        self._wake()
        answer: Message = msgspec.json.decode(response.content)
        return answer

    async def _open_again(self) -> None:
        backoff = Backoff(self._retry_for)
        while True:
            try:
                await self._begin()
                if self.on_reopened is not None:
                    await self.on_reopened()
                return
            except httpx.HTTPError as error:
                failure: SandboxAgentError = from_transport(error, self.url)
            except UnknownConnection as error:  # it went away again while we attached the sessions
                failure = error
            except SandboxAgentError as error:
                if not error.retryable:
                    raise
                failure = error
            wait = backoff.next_wait()
            if wait is None:
                raise ConnectionLost(f"gave up on {self.url}: {failure.detail}") from failure
            await asyncio.sleep(wait)

    def _reopened(self, task: asyncio.Task[None]) -> None:
        self._reopening = None
        if not task.cancelled():
            task.exception()  # whoever waits has got it

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
