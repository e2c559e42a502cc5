"""One request and its answer within one POST."""

from __future__ import annotations

import asyncio

from sandbox_agent.core.frames import Frame
from sandbox_agent.http.problems import Receive
from sandbox_agent.hub.asked import Answer
from sandbox_agent.hub.connection import Connection


async def answered(
    connection: Connection, frame: Frame, raw: bytes, receive: Receive, timeout: float | None
) -> Answer | None:
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
