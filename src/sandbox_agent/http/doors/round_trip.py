"""One request and its answer within one POST."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.methods import UNLIMITED
from sandbox_agent.errors import MalformedMessage, SandboxAgentError
from sandbox_agent.http.asgi.problems import Receive
from sandbox_agent.http.server.direct import Abandon
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.waiters import Answered
from sandbox_agent.hub.hub import Hub


async def answered(
    connection: Connection, frame: Frame, raw: bytes, receive: Receive, timeout: float | None
) -> Answered | None:
    """The answer, or None when the peer left before it came: then it is on the stream. Raises AgentTimeout."""
    waiting = asyncio.create_task(connection.request(frame, raw, timeout=timeout))
    leaving = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return waiting.result()
        return None
    finally:
        leaving.cancel()
        if not waiting.done():
            waiting.cancel()


def ask_again(
    hub: Hub,
    connection: Connection,
    raw: bytes,
    give: Callable[[Frame, Answered | SandboxAgentError], None],
    timeout: float,
) -> Abandon | None:
    """A request like one that was answered, without waiting: see `http.direct`. None leaves it to the plain path."""
    frame = plain_request(hub, connection, raw)
    if frame is None:
        return None
    limit = None if frame.method in UNLIMITED else timeout
    return connection.ask(frame, raw, lambda answer: give(frame, answer), timeout=limit)


def plain_request(hub: Hub, connection: Connection, raw: bytes) -> Frame | None:
    """The request in `raw`, unless it is none, or cannot be taken at once."""
    try:
        frame = frames.parse(raw)
    except MalformedMessage:
        return None
    if not frame.is_request or not frames.is_valid_id(frame.key):
        return None
    return None if connection.is_closed or not hub.has_room(connection) else frame
