"""Histories that grow at other nodes, for those here who follow all of them."""

from __future__ import annotations

import asyncio

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, StreamKey
from sandbox_agent.errors import StoreError
from sandbox_agent.hub.sessions.sessions import Sessions
from sandbox_agent.store.postgres.directory import Directory

_EVERY = 0.5
_OVERLAP = 5.0
"""Seconds by which looks overlap: what was written first may be committed last."""


async def tell_growth(sessions: Sessions, directory: Directory) -> None:
    """Ask the database while somebody follows, and only then. Runs until cancelled."""
    known: dict[StreamKey, int] = {}
    since: float | None = None
    while True:
        await asyncio.sleep(_EVERY)
        if not sessions.growth.is_followed:
            since = None
            continue
        try:
            now, grown = await directory.grown(since)
        except StoreError:
            continue
        for stream, (first, last) in grown.items():
            _, agent, session = stream.split(":", 2)
            key = SessionKey(AgentId(agent), SessionId(session))
            fresh = max(first, known.get(stream, 0) + 1)
            if since is not None and last >= fresh and sessions.held(key) is None:
                sessions.growth.tell(key, fresh)
        known = {stream: last for stream, (_, last) in grown.items()}
        since = now - _OVERLAP
