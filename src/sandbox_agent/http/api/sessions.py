"""`/v1/sessions`: the list, one session, its transcript; and the search over all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec

from sandbox_agent.core.ids import AgentId, SessionName
from sandbox_agent.errors import InvalidParams, NotFound, UnknownSession
from sandbox_agent.history.transcript import MarkdownTranscript, TranscriptHead, jsonl_line
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.routes import Content, Operation
from sandbox_agent.hub.hub import Hub
from sandbox_agent.hub.sessions.search import SearchResult, SearchWanted
from sandbox_agent.hub.sessions.views import SessionDetail, SessionSummary, summarize
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


LIST_SESSIONS = Operation(
    "listSessions", "List sessions", "sessions", query=SessionsQuery, returns=SessionList, errors=(InvalidParams,)
)
SHOW_SESSION = Operation(
    "showSession",
    "Get a session",
    "sessions",
    "With its open permission requests and questions, and the attached connections. `{id}` is a session id or alias; "
    "`agent` is required only if two agents have a session with that id.",
    query=SessionQuery,
    returns=SessionDetail,
    errors=(InvalidParams, UnknownSession),
)
SEARCH_SESSIONS = Operation(
    "searchSessions",
    "Search conversations",
    "sessions",
    "Full-text search over prompts, messages, thoughts and titles of all sessions. All words must occur in one "
    'passage, `"quoted words"` in this order; the last word may be unfinished. `sequence` says where in the history '
    "a hit begins.",
    query=SearchWanted,
    returns=SearchResult,
    errors=(InvalidParams, NotFound),
)
READ_TRANSCRIPT = Operation(
    "readTranscript",
    "Download a session's history",
    "sessions",
    "`jsonl`: one `{sequence,time,source,envelope}` per line, messages as they were sent. `markdown`: readable text.",
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

    async def search(self, exchange: Exchange) -> SearchResult:
        return await self._hub.sessions.search.find(exchange.query(SearchWanted))

    async def show(self, exchange: Exchange) -> SessionDetail:
        wanted = exchange.query(SessionQuery)
        return await self._hub.sessions.describe(await self._record(exchange, wanted.agent))

    async def transcript(self, exchange: Exchange) -> None:
        wanted = exchange.query(TranscriptQuery)
        record = await self._record(exchange, wanted.agent)
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

    async def _record(self, exchange: Exchange, agent: str | None) -> SessionRecord:
        wanted = SessionName(exchange.path("id"), None if agent is None else AgentId(agent))
        return await self._hub.sessions.look_up(wanted)

    async def _jsonl(self, record: SessionRecord) -> AsyncIterator[bytes]:
        async for entry in self._hub.sessions.history.read_all(record.key.stream):
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
        async for entry in self._hub.sessions.history.read_all(record.key.stream):
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
