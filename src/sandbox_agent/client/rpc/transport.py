"""ACP over `/v1/rpc`, on bytes: the client sends and gets whole JSON-RPC messages, and notices nothing of the network.

What goes out is posted; everything that comes in, answers too, comes on one stream of events in order. A stream that
broke is taken up after the last event that was read. When the server has forgotten us, because it was restarted, the
handshake is made anew, the sessions are resumed, and requests without an answer are sent again if they may be.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from sandbox_agent.client.rpc.ledger import Ledger, Pending
from sandbox_agent.client.rpc.wire import Wire, was_sent
from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.json_values import read_json
from sandbox_agent.errors import (
    ConnectionLost,
    InvalidParams,
    MalformedMessage,
    SandboxAgentError,
    StreamTaken,
    UnknownConnection,
)

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

Deliver = Callable[[list[bytes]], Awaitable[None]]

_log = logging.getLogger(__name__)
_STREAM_ANSWER = 60.0
"""How long the answer to a broken request that must not be repeated may take to come on the stream."""


@dataclass(slots=True, eq=False)
class _Link:
    """One connection that the server gave us; event ids start anew with each."""

    id: str
    last_event: int = 0


class RpcTransport:
    """`deliver` gets every message for the client, in order, and more is read when it returns.

    A server that cannot be reached is waited for: `open_for` seconds when the connection is opened, `retry_for`
    seconds afterwards; then whatever waits is answered with an error. `on_reopened` is told when another connection
    has taken the place of the old one and its sessions are attached, before anything comes from it."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        deliver: Deliver,
        *,
        retry_for: float,
        open_for: float = 0.0,
        on_reopened: Callable[[], None] = lambda: None,
    ) -> None:
        self.failure: SandboxAgentError | None = None
        """Why nothing can be sent any more."""
        self._wire = Wire(http)
        self._deliver = deliver
        self._retry_for = retry_for
        self._open_for = open_for
        self._on_reopened = on_reopened
        self._initialize = b""
        self._link: _Link | None = None
        self._ledger = Ledger()
        self._reopening: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connection_id(self) -> str | None:
        return None if self._link is None else self._link.id

    async def send(self, raw: bytes) -> None:
        """Have the server take one message. A request is answered through `deliver`, whatever happens to it.

        Raises what made it impossible to tell the server anything else: a notification or an answer."""
        try:
            frame = frames.parse(raw)
        except MalformedMessage as error:
            await self._deliver([frames.failure(b"null", error)])
            return
        if not frame.is_request:
            await self._tell(frame, raw)
            return
        try:
            await self._request(frame, raw)
        except (SandboxAgentError, msgspec.MsgspecError) as error:
            known = error if isinstance(error, SandboxAgentError) else InvalidParams(str(error))
            await self._deliver([frames.failure(frame.key, known)])

    async def close(self) -> None:
        """Sessions and their turns go on."""
        self.failure = self.failure or ConnectionLost("the connection has been closed")
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._link is not None:
            await self._wire.close(self._link.id)

    async def _request(self, frame: Frame, raw: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        if frame.method == "initialize":
            await self._open(raw)
        elif self._link is None:
            raise MalformedMessage(f"initialize comes first, not {frame.method}")
        else:
            await self._post(self._ledger.request(frame, raw))

    async def _open(self, raw: bytes) -> None:
        backoff = Backoff(self._open_for)
        while True:
            try:
                connection_id, answer = await self._wire.open(raw)
                break
            except SandboxAgentError as error:
                if not _is_passing(error) or not await backoff.pause():
                    raise
        self._initialize, self._link = raw, _Link(connection_id)
        await self._deliver([answer])
        self._spawn(self._read())

    async def _post(self, pending: Pending) -> None:
        """Send a request until the server has it, or it has been answered."""
        backoff = Backoff(self._retry_for)
        while self._ledger.is_waiting(pending) and not pending.is_taken:
            link, generation = self._current(), self._ledger.generation
            failure: SandboxAgentError | None = None
            try:
                await self._wire.tell(pending.raw, link.id)
                pending.is_taken = generation == self._ledger.generation
                is_doubtful = not pending.is_taken  # the one that has it is gone
            except UnknownConnection:
                failure = await self._try_to_reopen(link)
                is_doubtful = False
            except SandboxAgentError as error:
                failure, is_doubtful = error, was_sent(error)
            if is_doubtful and not pending.may_repeat:
                self._spawn(self._fail_later(pending))
                return
            if failure is not None and not (_is_passing(failure) and await backoff.pause()):
                await self._fail(pending, failure)

    async def _tell(self, frame: Frame, raw: bytes) -> None:
        told = self._ledger.answer(frame, raw) if frame.is_answer else raw
        if told is None or self._link is None:
            return
        if self.failure is not None:
            raise self.failure
        backoff = Backoff(self._retry_for)
        while True:
            link = self._current()
            try:
                await self._wire.tell(told, link.id)
                return
            except UnknownConnection:
                failure = await self._try_to_reopen(link)
                if frame.is_answer:
                    return  # to a question that died with the old connection; it is asked again
            except SandboxAgentError as error:
                failure = error
            if failure is not None and not (_is_passing(failure) and await backoff.pause()):
                raise failure

    async def _read(self) -> None:
        """Deliver what the server sends until the transport is closed."""
        backoff = Backoff(self._retry_for)
        while True:
            link = self._current()
            failure: SandboxAgentError | None = ConnectionLost(f"the stream of {self._wire.url} ended again and again")
            try:
                await self._read_once(link, backoff)
            except UnknownConnection:
                failure = await self._try_to_reopen(link)
            except SandboxAgentError as error:
                failure = error
            if failure is None or link is not self._link:
                continue
            if not _is_passing(failure):
                self.failure = failure
                await self._fail_all(failure)
                return
            if not await backoff.pause():
                await self._fail_all(failure)
                await asyncio.sleep(backoff.longest)

    async def _read_once(self, link: _Link, backoff: Backoff) -> None:
        gaps = self._ledger.gaps
        async with contextlib.aclosing(self._wire.events(link.id, link.last_event)) as bursts:
            async for events in bursts:
                backoff.reset()
                if link is not self._link:
                    return
                new = [event for event in events if event.id is None or event.id > link.last_event]
                lines = [line for event in new if (line := self._ledger.incoming(event.data)) is not None]
                if lines:
                    await self._deliver(lines)
                link.last_event = max([link.last_event, *(event.id for event in new if event.id is not None)])
                if gaps != self._ledger.gaps:
                    gaps = self._ledger.gaps
                    self._spawn(self._ask_again())

    async def _ask_again(self) -> None:
        """Answers may have been lost as well: a request that is repeated is answered again."""
        for pending in [p for p in self._ledger.pending.values() if p.is_taken and p.may_repeat]:
            pending.is_taken = False
            await self._post(pending)

    async def _try_to_reopen(self, stale: _Link) -> SandboxAgentError | None:
        """None when another connection has replaced `stale`; else what was in the way. One attempt for all who ask."""
        if self._link is not stale:
            return None
        if self._reopening is None or self._reopening.done():
            self._reopening = self._spawn(self._reopen())
        try:
            await asyncio.shield(self._reopening)
        except SandboxAgentError as error:
            went_away_again = isinstance(error, UnknownConnection)
            if went_away_again or (error.retryable and not isinstance(error, ConnectionLost)):
                return ConnectionLost(f"{self._wire.url} does not take us back: {error.detail}")
            return error
        return None

    async def _reopen(self) -> None:
        connection_id, _ = await self._wire.open(self._initialize)
        for resumption in self._ledger.resumptions():
            answer = read_json(await self._wire.ask(resumption, connection_id)) or {}
            if "error" in answer:
                _log.warning("session not resumed: %s", answer["error"].get("message"))
        await self._deliver(self._ledger.reopened())
        self._on_reopened()
        while stale := [p for p in self._ledger.pending.values() if p.generation != self._ledger.generation]:
            for pending in stale:
                pending.generation = self._ledger.generation
                if pending.is_taken:  # others are being sent
                    await self._send_again(pending, connection_id)
        self._link = _Link(connection_id)

    async def _send_again(self, pending: Pending, connection_id: str) -> None:
        if not pending.may_repeat:
            lost = f"the server was restarted during {pending.method}: it may or may not have been done"
            await self._fail(pending, ConnectionLost(lost))
            return
        try:
            await self._wire.tell(pending.raw, connection_id)
        except SandboxAgentError as error:
            if _is_passing(error) or isinstance(error, UnknownConnection):
                raise
            await self._fail(pending, error)

    async def _fail_later(self, pending: Pending) -> None:
        """The server may have it, so it is not sent again; if it has, the answer comes on the stream."""
        await asyncio.sleep(_STREAM_ANSWER)
        lost = f"the connection broke during {pending.method}: it may or may not have been done"
        await self._fail(pending, ConnectionLost(lost))

    async def _fail(self, pending: Pending, error: SandboxAgentError) -> None:
        if self._ledger.give_up(pending):
            await self._deliver([frames.failure(pending.key, error)])

    async def _fail_all(self, error: SandboxAgentError) -> None:
        for pending in list(self._ledger.pending.values()):
            await self._fail(pending, error)

    def _current(self) -> _Link:
        if self._link is None:
            raise ConnectionLost("the connection has not been opened")
        return self._link

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not _is_known(error):
            _log.error("the transport broke", exc_info=error)


class Backoff:
    """Waits that double, with jitter, until `limit` seconds have passed since the first failure in a row."""

    first = 0.05
    longest = 5.0

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._wait = self.first
        self._since: float | None = None

    def reset(self) -> None:
        self._wait = self.first
        self._since = None

    async def pause(self) -> bool:
        """Wait for the next try; False at once when it is time to give up."""
        now = time.monotonic()
        self._since = self._since if self._since is not None else now
        if now - self._since >= self._limit:
            return False
        wait, self._wait = self._wait, min(self._wait * 2, self.longest)
        await asyncio.sleep(wait * random.uniform(0.5, 1.0))
        return True


def _is_passing(error: SandboxAgentError) -> bool:
    """Whether waiting and trying again may help."""
    return isinstance(error, ConnectionLost | StreamTaken) or (error.retryable and error.status in {429, 503})


def _is_known(error: BaseException) -> bool:
    return isinstance(error, SandboxAgentError)  # whoever waits for it has got it
