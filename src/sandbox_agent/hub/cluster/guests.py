"""The side of a link that has the sessions: clients of another node, each with a connection of its own here.

To everything else in the hub they are clients like all others. What they are told is read from their streams at the
pace of the link, so that a node that does not read costs bounded memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from sandbox_agent.core import frames
from sandbox_agent.core.effects import Retold
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.core.methods import goes_to_agent
from sandbox_agent.core.users import Right, User
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import MalformedMessage, SandboxAgentError
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.cluster import wire
from sandbox_agent.hub.cluster.places import Places
from sandbox_agent.hub.hub import Hub

_TICK = 15.0
_ACKNOWLEDGED = wire.WINDOW >> 4
_log = logging.getLogger(__name__)

Post = Callable[[bytes], Awaitable[None]]
"""Sends one message over the link; returns when the socket has taken it."""


class GuestConnection(Connection):
    """Remembers of each event where it stands in which history: the node of the client is told that too."""

    is_guest: ClassVar[bool] = True

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.places = Places()

    def deliver(self, session: SessionId | None, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        self._note(session, stream, sequence, len(lines))
        super().deliver(session, stream, sequence, lines)

    def deliver_own(self, session: SessionId | None, line: bytes) -> None:
        self._note(session, None, 0, 1)
        super().deliver_own(session, line)

    def deliver_own_lines(self, session: SessionId | None, lines: list[bytes]) -> None:
        self._note(session, None, 0, len(lines))
        super().deliver_own_lines(session, lines)

    def deliver_retold(self, session: SessionId, stream: StreamKey, entries: Retold) -> None:
        first, agent = self.stream.last_id + 1, _agent_of(stream)
        for entry, lines in entries:
            left = 0 if entry and len(lines) > 1 else None
            self.places.note(first, wire.Run(len(lines), agent, session, entry=entry, left=left))
            first += len(lines)
        super().deliver_own_lines(session, [line for _, lines in entries for line in lines])

    def attached(self, key: SessionKey, last: int) -> None:
        self._note(key.session, key.stream, last + 1, 0)

    def _note(self, session: SessionId | None, stream: StreamKey | None, sequence: int, count: int) -> None:
        agent = _agent_of(stream) if stream is not None else ""
        self.places.note(self.stream.last_id + 1, wire.Run(count, agent, session, sequence))


def _agent_of(stream: StreamKey) -> str:
    return stream.split(":", 2)[1]


class Guests:
    """All clients that come over one link. `close` when it is gone."""

    def __init__(self, hub: Hub, post: Post) -> None:
        self._hub = hub
        self._post = post
        self._guests: dict[int, _Guest] = {}

    async def take(self, message: bytes) -> None:
        """Raises MalformedMessage for what breaks the rules of a link."""
        head, body = wire.decode(message)
        match head:
            case wire.Say(channel):
                guest = self._guests.get(channel)
                if guest is not None:  # else it has ended, and the other side is being told
                    guest.say(body)
            case wire.Open():
                await self._open(head)
            case wire.Close(channel):
                guest = self._guests.pop(channel, None)
                if guest is not None:
                    await guest.close()
            case _:
                raise MalformedMessage(f"{type(head).__name__} is not for this side of a link")

    async def close(self) -> None:
        guests, self._guests = list(self._guests.values()), {}
        for guest in guests:
            await guest.close()

    async def _open(self, asked: wire.Open) -> None:
        if asked.channel in self._guests:
            raise MalformedMessage(f"channel {asked.channel} is open already")
        try:
            user = User(asked.user, Right(asked.right))
            connection = self._hub.admit(
                AgentId(asked.agent),
                asked.capabilities,
                asked.client_info,
                Version(asked.version),
                kind=GuestConnection,
                user=user,
            )
        except SandboxAgentError as error:
            await self._post(wire.encode(wire.Over(asked.channel, error.detail)))
            return
        except ValueError as error:
            raise MalformedMessage(f"not a client: {error}") from None
        self._guests[asked.channel] = _Guest(self._hub, asked.channel, connection, self._post)


class _Guest:
    def __init__(self, hub: Hub, channel: int, connection: GuestConnection, post: Post) -> None:
        self._hub = hub
        self._channel = channel
        self._connection = connection
        self._post = post
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        """Bounded by the window: the other side waits until it hears that what it said was taken."""
        self._held = 0
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._listen())]

    def say(self, raw: bytes) -> None:
        """Raises MalformedMessage when more is said than may wait."""
        if self._held > 2 * wire.WINDOW:
            raise MalformedMessage(f"channel {self._channel}: {self._held} bytes wait already")
        self._held += len(raw)
        self._said.put_nowait(raw)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._hub.close_connection(self._connection.id)

    async def _tell(self) -> None:
        connection, reader = self._connection, self._connection.stream.read_from(0)
        try:
            while not reader.is_over:
                before = reader.position
                batch = await reader.take(wait=_TICK)
                if batch is not None:
                    told = wire.Told(self._channel, connection.places.take(batch, after=before))
                    await self._post(wire.encode(told, b"\n".join(batch.lines)))
            await self._post(wire.encode(wire.Over(self._channel, reader.over_because)))
        except OSError:
            pass  # the link is gone, and we are about to be closed
        finally:
            reader.close()

    async def _listen(self) -> None:
        taken = 0
        while True:
            raw = await self._said.get()
            try:
                await self._pass_on(raw)
            except Exception:  # noqa: BLE001 - one message must not keep all later ones from being heard
                _log.exception("a message of a client of another node failed connection=%s", self._connection.id)
            self._held -= len(raw)
            taken += len(raw)
            if taken >= _ACKNOWLEDGED:
                with contextlib.suppress(OSError):
                    await self._post(wire.encode(wire.Took(self._channel, taken)))
                taken = 0

    async def _pass_on(self, raw: bytes) -> None:
        connection = self._connection
        frame = frames.parse(raw)
        try:
            if not frame.is_request or goes_to_agent(frame.method or ""):
                await self._hub.room(connection, frame)
            if frame.is_request:
                connection.submit(frame, raw)
            else:
                self._hub.send(connection, frame, raw)
        except SandboxAgentError as error:
            if frame.is_request:
                connection.deliver_own(frame.session, frames.failure(frame.key, error))
