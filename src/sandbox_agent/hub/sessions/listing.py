"""`session/list`: the server-wide inventory, over all agents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.sessions.inventory import Sessions
from sandbox_agent.store.base import SessionFilter, SessionRecord


class _Wanted(msgspec.Struct):
    cwd: str | None = None
    cursor: str | None = None
    agent: str | None = None
    ended: bool | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


async def list_sessions(sessions: Sessions, request: Request) -> None:
    request.answer(await listed(sessions, request))


async def listed(sessions: Sessions, request: Request) -> dict[str, Any]:
    """One page. An agent may be named in our `_meta`, or beside `cwd` where the method is ours."""
    wanted = request.read(_Wanted)
    agent = wanted.agent or request.meta().get("agent")
    matching = SessionFilter(
        cwd=wanted.cwd, agent=AgentId(agent) if isinstance(agent, str) else None, is_ended=wanted.ended
    )
    page = await sessions.page(matching, cursor=wanted.cursor, limit=wanted.limit)
    answer: dict[str, Any] = {"sessions": [session_info(record) for record in page.sessions]}
    if page.unreadable:
        unreadable = [{"agent": key.agent, "sessionId": key.session} for key in page.unreadable]
        answer["_meta"] = {META: {"unreadable": unreadable}}
    return answer if page.next_cursor is None else {**answer, "nextCursor": page.next_cursor}


def session_info(record: SessionRecord) -> dict[str, Any]:
    """A session as ACP's SessionInfo, with what ACP lacks under our key."""
    ours = {
        "agent": record.agent,
        "alias": record.alias,
        "createdAt": iso(record.created),
        "ended": record.ended is not None,
        "endedReason": record.ended_reason,
        "eventCount": record.event_count,
        "mode": record.mode,
        "model": record.model,
    }
    return {
        "sessionId": record.session_id,
        "cwd": record.cwd or "/",
        "title": record.title,
        "updatedAt": iso(record.updated),
        "_meta": {META: {name: value for name, value in ours.items() if value is not None}},
    }


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
