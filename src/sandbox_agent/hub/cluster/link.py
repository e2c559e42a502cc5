"""One socket to another node, shared by all clients here that use its sessions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from itertools import count
from typing import Protocol

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus, WebSocketException

from sandbox_agent.errors import MalformedMessage, NodeUnreachable
from sandbox_agent.hub.cluster import wire
from sandbox_agent.hub.cluster.dialling import CLOSE_SECONDS, DIAL_SECONDS, open_socket, refused

PATH = "/v1/nodes/link"
_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Who has a channel of a link."""

    def told(self, runs: list[wire.Run], lines: list[bytes]) -> None: ...
    def took(self, size: int) -> None: ...
    def lost(self, reason: str) -> None:
        """Nothing more will be told on this channel, and what was said may have been heard or not."""


class Link:
    """Made by `dial`. Whatever ends it, each of its channels is told that it is lost, once."""

    def __init__(self, node: str, socket: ClientConnection, on_end: Callable[[Link], None]) -> None:
        self.node = node
        self.form = _form_of(socket)
        self._socket = socket
        self._on_end = on_end
        self._numbers = count(1)
        self._listeners: dict[int, Listener] = {}
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        """Bounded by the windows of the channels."""
        self.is_over = False
        self._reading = asyncio.create_task(self._read())
        self._writing = asyncio.create_task(self._write())

    def open(self, listener: Listener, introduce: Callable[[int], wire.Open]) -> int:
        """A new channel. Raises NodeUnreachable when the link has just ended."""
        if self.is_over:
            raise NodeUnreachable(f"the link to node {self.node} has ended", node=self.node)
        channel = next(self._numbers)
        self._listeners[channel] = listener
        self.post(wire.encode(introduce(channel)))
        return channel

    def post(self, message: bytes) -> None:
        if not self.is_over:
            self._outgoing.put_nowait(message)

    def close_channel(self, channel: int) -> None:
        if self._listeners.pop(channel, None) is not None:
            self.post(wire.encode(wire.Close(channel)))

    async def close(self) -> None:
        self._end("this node is shutting down")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._socket.close()

    async def _write(self) -> None:
        try:
            while True:
                await self._socket.send(await self._outgoing.get())
        except (WebSocketException, OSError) as error:
            self._end(str(error))

    async def _read(self) -> None:
        reason = "the other node closed it"
        try:
            async for message in self._socket:
                self._take(message if isinstance(message, bytes) else message.encode())
        except (WebSocketException, OSError, MalformedMessage) as error:
            reason = str(error)
        finally:
            self._end(reason)

    def _take(self, message: bytes) -> None:
        head, body = wire.decode(message)
        match head:
            case wire.Told(channel, runs):
                if (listener := self._listeners.get(channel)) is not None:
                    listener.told(runs, body.split(b"\n") if body else [])
            case wire.Took(channel, size):
                if (listener := self._listeners.get(channel)) is not None:
                    listener.took(size)
            case wire.Over(channel, reason):
                if (listener := self._listeners.pop(channel, None)) is not None:
                    listener.lost(reason)
            case _:
                raise MalformedMessage(f"{type(head).__name__} is not for this side of a link")

    def _end(self, reason: str) -> None:
        if self.is_over:
            return
        self.is_over = True
        _log.info("link ended node=%s reason=%s", self.node, reason)
        self._on_end(self)
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener.lost(reason)
        for task in (self._reading, self._writing):
            if task is not asyncio.current_task():
                task.cancel()


def _form_of(socket: ClientConnection) -> int:
    """What the other node says that it tells: see `wire.FORM`."""
    said = socket.response.headers.get(wire.FORM_HEADER, "") if socket.response is not None else ""
    return int(said) if said.isascii() and said.isdigit() else 1


async def dial(
    node: str, url: str, token: str, *, lease: float, ca_file: str | None, on_end: Callable[[Link], None]
) -> Link:
    """A link to a node at the address that it has registered. Raises NodeUnreachable."""
    try:
        socket = await open_socket(
            node,
            url,
            PATH,
            {"Authorization": f"Bearer {token}"},
            ca_file=ca_file,
            max_size=None,
            open_timeout=min(DIAL_SECONDS, lease / 3),
            ping_interval=lease / 6,
            ping_timeout=lease / 3,
            close_timeout=min(CLOSE_SECONDS, lease / 6),
        )
    except InvalidStatus as error:
        raise refused(node, url, error.response.status_code) from None
    _log.info("link opened node=%s url=%s", node, url)
    return Link(node, socket, on_end)
