"""One client's attachment: its streams of events, and its requests that wait for an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

from sandbox_agent.core.effects import Retold
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId, ConnectionId, SessionId, SessionKey, StreamKey, connection_stream
from sandbox_agent.core.methods import CLAIMED
from sandbox_agent.core.session import Client
from sandbox_agent.core.users import OWNER, User
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentExited, AgentTimeout, SandboxAgentError, UnknownConnection
from sandbox_agent.hub.clients.stream import Stream
from sandbox_agent.hub.clients.waiters import Answered, Deadlines, Waiter

Dispatch = Callable[["Connection", int, Frame, bytes], None]
OpenStream = Callable[[StreamKey, int], Stream]
"""Opens a stream that may hold a part of the memory of a whole one: a half, a third, …"""


class Connection:
    """What a door holds: send, request, follow, close. All events are on one stream."""

    echoes: ClassVar[bool] = False
    """Whether answers that somebody waited for are on the stream too."""
    is_guest: ClassVar[bool] = False
    """Whether its client is at another node, which has the whole of it."""
    is_correlated: ClassVar[bool] = False
    """Whether messages to it say what the earlier API would have said of them."""

    def __init__(
        self,
        connection_id: ConnectionId,
        agent: AgentId,
        capabilities: dict[str, Any],
        client_info: dict[str, Any],
        version: Version,
        open_stream: OpenStream,
        dispatch: Dispatch,
        user: User = OWNER,
    ) -> None:
        self.id = connection_id
        self.user = user
        """Who opened it; nobody else may use it."""
        self.agent = agent
        self.capabilities = capabilities
        """What the client can do, in the words of version 1."""
        self.client_info = client_info
        self.version = version
        """The version of ACP that the client speaks, whatever its agent does."""
        self.client = Client(
            connection_id,
            _claims(capabilities),
            client_info,
            version,
            wants(capabilities, "asSpoken"),
            user.name,
            user.may_prompt,
        )
        self.stream = open_stream(connection_stream(connection_id), 1)
        self.created = time.time()
        self.last_used = time.monotonic()
        self.is_closed = False
        self._open_stream = open_stream
        self._dispatch = dispatch
        self._tickets = count(1)
        self._waiters: dict[int, asyncio.Future[Answered] | Waiter] = {}
        self._deadlines = Deadlines(self._waiters)

    @property
    def streams(self) -> list[Stream]:
        return [self.stream]

    async def request(self, frame: Frame, raw: bytes, *, timeout: float | None) -> Answered:
        """Send a request and wait for its answer. Raises AgentTimeout.

        When the wait ends early, for whatever reason, the answer comes on the stream instead."""
        self._require_open()
        ticket = next(self._tickets)
        waiter: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiters[ticket] = waiter
        try:
            self._dispatch(self, ticket, frame, raw)
            async with asyncio.timeout(timeout):
                return await waiter
        except TimeoutError:
            if waiter.done() and not waiter.cancelled():
                return waiter.result()
            raise AgentTimeout(
                f"no answer to {frame.method} within {timeout:g} s; it will come on the stream"
            ) from None
        except asyncio.CancelledError:
            is_answered = waiter.done() and not waiter.cancelled() and waiter.exception() is None
            if is_answered and not self.echoes:
                self.stream.append_own([waiter.result().line])
            raise
        finally:
            del self._waiters[ticket]

    def ask(
        self, frame: Frame, raw: bytes, give: Callable[[Answered | SandboxAgentError], None], *, timeout: float | None
    ) -> Callable[[], None]:
        """Send a request whose answer is given to `give`, perhaps before this returns.

        What it returns ends the wait: then the answer comes on the stream instead, as it does after a time-out."""
        if self.is_closed:  # as `_require_open`, without the call: this is the hottest way in
            raise UnknownConnection(self.id)
        ticket = next(self._tickets)
        waiter = Waiter(self._waiters, ticket, frame.method, give)
        if timeout is not None:
            self._deadlines.add(waiter, timeout)
        try:
            self._dispatch(self, ticket, frame, raw)
        except BaseException:
            waiter.abandon()  # whoever asked is told by the exception
            raise
        return waiter.abandon

    def submit(self, frame: Frame, raw: bytes) -> None:
        """Send a request whose answer comes on the stream."""
        self._require_open()
        self._dispatch(self, next(self._tickets), frame, raw)

    def attached(self, key: SessionKey, last: int) -> None:
        """It follows a session from here on, whose newest entry is `last`."""

    def deliver(self, session: SessionId | None, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        """Events that stand in a session's history."""
        self.stream.append(stream, sequence, lines)

    def deliver_own(self, session: SessionId | None, line: bytes) -> None:
        """An event for this connection alone."""
        self.stream.append_own([line])

    def deliver_own_lines(self, session: SessionId | None, lines: list[bytes]) -> None:
        """Events for this connection alone."""
        self.stream.append_own(lines)

    def deliver_retold(self, session: SessionId, stream: StreamKey, entries: Retold) -> None:
        """What stands in a session's history, in the words of the client's version. An entry is never taken apart."""
        self.deliver_own_lines(session, [line for _, lines in entries for line in lines])

    def deliver_replayed(self, session: SessionId, lines: list[bytes]) -> None:
        """Events for this connection alone, out of a history: all that can be said of them has been."""
        self.deliver_own_lines(session, lines)

    def reply(self, ticket: int, line: bytes, session: SessionId | None, method: str) -> None:
        """Hand an answer to whoever waits for it, else put it on the stream."""
        if not self._hand_over(ticket, line):
            self.deliver_own(session, line)

    def agent_exited(self, error: AgentExited) -> None:
        """The connection's agent has ended; who waited has been answered."""

    @property
    def is_used(self) -> bool:
        """Somebody reads its events or waits for an answer."""
        return bool(self._waiters) or any(stream.has_readers for stream in self.streams)

    def close(self, reason: str, error: SandboxAgentError) -> None:
        """End its streams; who still waits for an answer gets `error`."""
        self.is_closed = True
        for stream in self.streams:
            stream.end(reason)
        for waiter in list(self._waiters.values()):
            if isinstance(waiter, Waiter):
                waiter.give_up(error)
            elif not waiter.done():
                waiter.set_exception(error)

    def _require_open(self) -> None:
        """Nobody would answer what comes after the close. Raises UnknownConnection."""
        if self.is_closed:
            raise UnknownConnection(self.id)

    def _hand_over(self, ticket: int, line: bytes) -> bool:
        """Whether somebody was waiting for this answer."""
        waiter = self._waiters.get(ticket)
        if waiter is None or (not isinstance(waiter, Waiter) and waiter.done()):
            return False  # who is a Waiter leaves when it is done
        waiter.set_result(Answered(line, self.stream.last_id))
        return True


def _claims(capabilities: dict[str, Any]) -> frozenset[tuple[str, ...]]:
    """The claims of `methods.CLAIMED` that a client's capabilities contain."""
    found = set()
    for path in set(CLAIMED.values()):
        value: Any = capabilities
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is True or (isinstance(value, dict)):
            found.add(path)
    return frozenset(found)


def wants(capabilities: Any, what: str) -> bool:
    """Whether a client asks for something of ours in its capabilities."""
    meta = capabilities.get("_meta") if isinstance(capabilities, dict) else None
    ours = meta.get(META) if isinstance(meta, dict) else None
    return isinstance(ours, dict) and ours.get(what) is True
