"""What the doors have in common: reading a client's first message, and one request with its answer in one POST."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import InvalidParams, MalformedMessage, UnknownAgent
from sandbox_agent.http.asgi.messages import Receive, Respond, Response, Scope
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.waiters import Answered
from sandbox_agent.hub.hub import Hub


def read_params(raw: bytes) -> dict[str, Any]:
    """The params of `initialize`. Raises InvalidParams."""
    try:
        return msgspec.json.decode(frames.params_of(raw), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidParams(f"params of initialize: {error}") from None


async def open_connection(
    hub: Hub, agent: AgentId, params: dict[str, Any], **options: Any
) -> tuple[Connection, dict[str, Any]]:
    """As the hub does. Here an agent that does not exist is a mistake in the message, not a missing page."""
    try:
        return await hub.open_connection(agent, params, **options)
    except UnknownAgent as error:
        error.status = 400
        raise


def query(scope: Scope, name: str) -> str | None:
    """One value from the query string; None if it is absent or empty. Raises InvalidParams when given twice."""
    given: bytes = scope["query_string"]
    found = parse_qs(given.decode("latin-1")).get(name)
    if not found:
        return None
    if len(found) > 1:
        raise InvalidParams(f"query parameter {name} is given {len(found)} times; send it once")
    return found[0]


def agent_in_meta(params: dict[str, Any]) -> AgentId | None:
    """The agent named in `params._meta["sandboxagent.dev"].agent`."""
    meta = params.get("_meta")
    ours = meta.get(META) if isinstance(meta, dict) else None
    agent = ours.get("agent") if isinstance(ours, dict) else None
    return AgentId(agent) if isinstance(agent, str) and agent else None


def wanted_agent(scope: Scope, params: dict[str, Any], default: str | None) -> AgentId:
    """From `?agent=`, from `_meta`, or the server's default. Raises InvalidParams when there is none."""
    agent = query(scope, "agent") or agent_in_meta(params) or default
    if not agent:
        raise InvalidParams(
            f'no agent given: set ?agent=NAME, params._meta["{META}"].agent, or the setting default_agent'
        )
    return AgentId(agent)


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


def respond_with(respond: Respond, response: Response) -> None:
    respond(response.status, response.header_lines, response.body)


def plain_request(hub: Hub, connection: Connection, raw: bytes) -> Frame | None:
    """The request in `raw`, unless it is none, or cannot be taken at once: then it is for the plain path.

    For requests like one that was answered: see `http.server.direct`."""
    try:
        frame = frames.parse(raw)
    except MalformedMessage:
        return None
    if frame.method is None or not frames.is_valid_id(frame.key):
        return None
    return None if connection.is_closed or not hub.has_room(connection, frame) else frame
