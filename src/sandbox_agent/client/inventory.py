"""The sessions that a server knows, running or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from sandbox_agent.client.api import Api


class SessionInfo(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    agent: str
    alias: str | None = None
    title: str | None = None
    cwd: str | None = None
    mode: str | None = None
    model: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    ended: bool = False
    ended_reason: str | None = None
    event_count: int = 0
    metadata: dict[str, Any] = {}


async def list_sessions(
    api: Api, *, agent: str | None = None, cwd: str | None = None, ended: bool | None = None
) -> AsyncIterator[SessionInfo]:
    """Newest first, page by page."""
    cursor: str | None = None
    while True:
        page = await api.get("/v1/sessions", agent=agent, cwd=cwd, ended=ended, cursor=cursor)
        for session in page["sessions"]:
            yield msgspec.convert(session, SessionInfo)
        cursor = page.get("nextCursor")
        if cursor is None:
            return
