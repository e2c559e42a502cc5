"""`/v1/sessions`: the inventory, one session, its transcript."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec

from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import InvalidParams, UnknownSession
from sandbox_agent.history.transcript import MarkdownTranscript, TranscriptHead, jsonl_line
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.routes import Content, Operation
from sandbox_agent.hub.hub import Hub
from sandbox_agent.hub.sessions.history import read_all
from sandbox_agent.hub.sessions.views import SessionDetail, SessionSummary, describe_session, find_record, summarize
from sandbox_agent.store.base import SessionFilter, SessionRecord

_PIECE = 64 << 10


class SessionsQuery(msgspec.Struct, rename="camel"):
    agent: str | None = None
    cwd: str | None = None
    ended: bool | None = None
    cursor: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class SessionQuery(msgspec.Struct, rename="camel"):
    agent: str | None = None


class TranscriptQuery(msgspec.Struct, rename="camel"):
    format: Literal["jsonl", "markdown"] = "jsonl"
    agent: str | None = None


class UnreadableSession(msgspec.Struct, frozen=True, rename="camel"):
    """A session whose record on disk is damaged. `sandbox-agent store check --repair` restores what can be read."""

    agent: str
    session_id: str


class SessionList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Newest first. `nextCursor` is null on the last page. `unreadable` is empty unless the disk has failed."""

    sessions: list[SessionSummary]
    next_cursor: str | None
    unreadable: list[UnreadableSession] = []


_EXAMPLE = {
    "sessionId": "mock-5a0c",
    "agent": "mock",
    "alias": "my-session",
    "title": "Fix the tests",
    "cwd": "/work/project",
    "mode": "ask",
    "model": "mock-large",
    "createdAt": "2026-01-31T12:00:00.000Z",
    "updatedAt": "2026-01-31T12:05:00.000Z",
    "ended": False,
    "endedAt": None,
    "endedReason": None,
    "eventCount": 42,
    "metadata": {},
}
LIST_SESSIONS = Operation(
    name="listSessions",
    summary="Every session, running or not, page by page",
    tag="sessions",
    query=SessionsQuery,
    returns=SessionList,
    errors=(InvalidParams,),
    example={"sessions": [_EXAMPLE], "nextCursor": None, "unreadable": []},
)
SHOW_SESSION = Operation(
    name="showSession",
    summary="One session, with what waits for an answer and who is attached",
    tag="sessions",
    description="`{id}` is a session id or alias. `agent` is needed only where two agents have a session of that id.",
    query=SessionQuery,
    returns=SessionDetail,
    errors=(InvalidParams, UnknownSession),
    example={
        **_EXAMPLE,
        "lastActivityAt": "2026-01-31T12:05:00.000Z",
        "isLive": True,
        "isBusy": True,
        "queuedPrompts": 0,
        "pendingPermissions": [
            {
                "requestId": 7,
                "method": "session/request_permission",
                "params": {"sessionId": "mock-5a0c", "toolCall": {"toolCallId": "1"}, "options": []},
            }
        ],
        "pendingQuestions": [],
        "attachedConnections": [
            {
                "connectionId": "conn_k3yX",
                "clientInfo": {"name": "inspector"},
                "createdAt": "2026-01-31T12:00:00.000Z",
                "isStreaming": True,
                "lastEventId": 42,
            }
        ],
        "modes": [{"id": "ask", "name": "Ask"}],
        "models": [{"id": "mock-large", "name": "Large"}],
        "configOptions": [],
    },
)
READ_TRANSCRIPT = Operation(
    name="readTranscript",
    summary="A session's whole history as a file",
    tag="sessions",
    description="`jsonl`: one `{sequence,time,source,envelope}` a line, envelopes as they went over the wire. "
    "`markdown`: for people.",
    query=TranscriptQuery,
    returns=Content(("application/x-ndjson", "text/markdown"), {"type": "string"}),
    errors=(InvalidParams, UnknownSession),
)


class SessionsApi:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def list(self, exchange: Exchange) -> SessionList:
        wanted = exchange.query(SessionsQuery)
        matching = SessionFilter(
            agent=None if wanted.agent is None else AgentId(wanted.agent), cwd=wanted.cwd, is_ended=wanted.ended
        )
        page = await self._hub.sessions.page(matching, cursor=wanted.cursor, limit=wanted.limit)
        return SessionList(
            sessions=[summarize(record) for record in page.sessions],
            next_cursor=page.next_cursor,
            unreadable=[UnreadableSession(key.agent, key.session) for key in page.unreadable],
        )

    async def show(self, exchange: Exchange) -> SessionDetail:
        wanted = exchange.query(SessionQuery)
        return await describe_session(self._hub, await find_record(self._hub, exchange.path("id"), wanted.agent))

    async def transcript(self, exchange: Exchange) -> None:
        wanted = exchange.query(TranscriptQuery)
        record = await find_record(self._hub, exchange.path("id"), wanted.agent)
        pieces, media = (
            (self._jsonl(record), b"application/x-ndjson")
            if wanted.format == "jsonl"
            else (self._markdown(record), b"text/markdown; charset=utf-8")
        )
        headers = [(b"content-type", media), (b"cache-control", b"no-store")]
        await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
        if not exchange.is_head:
            async for piece in _gathered(pieces):
                await exchange.send({"type": "http.response.body", "body": piece, "more_body": True})
        await exchange.send({"type": "http.response.body", "body": b""})

    async def _jsonl(self, record: SessionRecord) -> AsyncIterator[bytes]:
        async for entry in read_all(self._hub.store, record.key.stream):
            yield jsonl_line(entry)

    async def _markdown(self, record: SessionRecord) -> AsyncIterator[bytes]:
        head = TranscriptHead(
            session_id=record.session_id,
            agent=record.agent,
            title=record.title,
            cwd=record.cwd,
            created=record.created,
        )
        transcript = MarkdownTranscript(head)
        async for entry in read_all(self._hub.store, record.key.stream):
            yield transcript.feed(entry).encode("utf-8", errors="replace")
        yield transcript.finish().encode("utf-8", errors="replace")


async def _gathered(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held: list[bytes] = []
    size = 0
    async for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
