"""`GET /v1/events`: every change of sessions, turns, questions, agents and installs, as server-sent events."""

from __future__ import annotations

import asyncio

import msgspec

from sandbox_agent.errors import InvalidParams, TooMany
from sandbox_agent.http.access.behalf import ON_BEHALF
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.routes import Content, Operation
from sandbox_agent.http.asgi.sse import HEARTBEAT, beat, begin, finish, peer_left
from sandbox_agent.hub.feed import Change, FeedReader
from sandbox_agent.hub.hub import Hub

_WAITING = 10_000
"""Changes that may wait for a reader that does not keep up; beyond, it is told to list anew."""


class EventsQuery(msgspec.Struct):
    after: str | None = None
    node: str | None = None


FOLLOW_EVENTS = Operation(
    "followEvents",
    "Stream all changes on the server (server-sent events)",
    "sessions",
    "Each event is a JSON object: `type` is `session.created`, `session.updated`, "
    "`session.ended`, `session.deleted`, `turn.queued`, `turn.started`, `turn.ended`, `question.asked`, "
    "`question.settled`, `agent.changed`, `install.progress`, `process.started`, `process.exited` or "
    "`process.deleted`. Starts with the next change; with `Last-Event-ID` or `after`, it resumes after that event "
    "without a gap. If that is not possible, the first event is `reset`: fetch the lists again. In a cluster, the "
    "changes of all nodes are reported, each with its `node`, or with `?node=` those of one. `reset` with a `node` "
    "says that changes of that node may be missing.",
    query=EventsQuery,
    returns=Content(("text/event-stream",), {"type": "string"}),
    errors=(InvalidParams, TooMany),
)


class EventsApi:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def follow(self, exchange: Exchange) -> None:
        query = exchange.query(EventsQuery)
        after = exchange.header(b"last-event-id") or query.after
        is_of_one = query.node is not None or exchange.header(ON_BEHALF) is not None  # a node asks for ours alone
        feed = self._hub.feed if is_of_one else await self._hub.whole_feed()
        reader = feed.read(after, limit=_WAITING)
        writing = asyncio.create_task(_write(reader, exchange, has_body=not exchange.is_head))
        leaving = asyncio.create_task(peer_left(exchange.receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        finally:
            reader.close()
            writing.cancel()
            leaving.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)


async def _write(reader: FeedReader, exchange: Exchange, *, has_body: bool) -> None:
    await begin(exchange.send)
    while has_body and not reader.is_over:
        changes = await reader.take(wait=HEARTBEAT)
        if changes:
            body = b"".join([_event(change) for change in changes])
            await exchange.send({"type": "http.response.body", "body": body, "more_body": True})
        else:
            await beat(exchange.send)
    await finish(exchange.send, "server is shutting down")


def _event(change: Change) -> bytes:
    return b"event: %b\nid: %b\ndata: %b\n\n" % (change.kind.encode(), change.position.encode(), change.body)
