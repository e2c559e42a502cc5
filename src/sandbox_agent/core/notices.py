"""What everybody attached to a session is told besides ACP: of its turns, and of questions that are settled.

A notice is a `Notice` effect when it happens, so that it is in the feed too, and a line again for one who comes later.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from sandbox_agent.core import frames
from sandbox_agent.core.effects import Deliver, Effect, Notice
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import ConnectionId
from sandbox_agent.core.session import Ask, Call, Client, Session
from sandbox_agent.core.versions import Version

PREFIX = "_sandboxagent/session/"
SettledBy = Literal["client", "policy", "timeout", "cancelled", "agent", "exited"]


class _PromptParams(msgspec.Struct):
    prompt: list[Raw] = []


def turn_queued(session: Session, call: Call) -> Notice:
    return Notice(session.id, "turn_queued", _queued(session, call), session.connections)


def turn_started(session: Session, call: Call) -> list[Effect]:
    """The turn begins: its prompt is shown, as an agent would replay it, to all but the one who sent it.

    Clients of version 2 get it as a message, all of them: from the agent, or made from what the notice holds."""
    blocks = _blocks(call) if call.message_id else []
    started = Notice(session.id, "turn_started", _named(call), session.connections, call.message_id, blocks)
    agent = Version.V1 if call.held is None else Version.V2
    others = [c.id for c in session.attached.values() if c.id != call.connection and c.hears(agent) is Version.V1]
    return [started, *_shown(session, call, others)] if others else [started]


def turn_ended(session: Session, call: Call, answer: bytes, *, has_run: bool = True) -> Notice:
    """How it ended: `answer` has the result or the error that the prompter gets."""
    name = "result" if (outcome := frames.member(answer, "result")) is not None else "error"
    outcome = outcome or frames.member(answer, "error") or b"null"
    params = {**_named(call), "hasRun": has_run, name: Raw(outcome)}
    return Notice(session.id, "turn_ended", params, session.connections)


def asked(session: Session, ask: Ask) -> Notice:
    """Only in the feed: those attached have the question itself."""
    return Notice(session.id, "asked", {"requestId": ask.id, "method": ask.method}, ())


def settled(
    session: Session, ask: Ask, by: SettledBy, *, client: Client | None = None, answer: bytes | None = None
) -> Notice:
    params: dict[str, Any] = {"requestId": ask.id, "method": ask.method, "by": by}
    if client is not None:
        params |= {"connectionId": client.id, "clientInfo": client.info}
        if client.user is not None:
            params["user"] = client.user
    result = frames.member(answer, "result") if answer is not None else None
    if result is not None:
        params["result"] = Raw(result)
    return Notice(session.id, "settled", params, session.connections)


def line_of(notice: Notice) -> bytes:
    """The notification that a notice is."""
    return frames.notification(PREFIX + notice.name, {"sessionId": notice.session, **notice.params})


def again(client: Client, session: Session) -> list[Effect]:
    """The turn that runs and those that wait, for one who has just come."""
    notices = [Notice(session.id, "turn_queued", _queued(session, call), ()) for call in session.queue]
    if session.running is not None:
        notices.insert(0, Notice(session.id, "turn_started", _named(session.running), ()))
    return [Deliver(client.id, line_of(notice), session.id) for notice in notices]


def _named(call: Call) -> dict[str, Any]:
    named: dict[str, Any] = {
        "promptId": call.prompt_id,
        "promptedBy": call.connection,
        "requestId": Raw(call.key or b"null"),
    }
    if call.user is not None:
        named["user"] = call.user
    return named if call.turn_id is None else {**named, "turnId": call.turn_id}


def _queued(session: Session, call: Call) -> dict[str, Any]:
    return {**_named(call), "position": session.queue.index(call) + 1, "prompt": _blocks(call)}


def _blocks(call: Call) -> list[Raw]:
    try:
        return msgspec.json.decode(frames.params_of(call.line), type=_PromptParams).prompt
    except msgspec.MsgspecError:
        return []


def _shown(session: Session, call: Call, others: list[ConnectionId]) -> list[Effect]:
    by = {"promptedBy": call.connection}
    meta = {META: by if call.user is None else {**by, "user": call.user}}
    updates = [{"sessionUpdate": "user_message_chunk", "content": block, "_meta": meta} for block in _blocks(call)]
    lines = [frames.notification("session/update", {"sessionId": call.session, "update": update}) for update in updates]
    return [Deliver(connection, line, session.id) for line in lines for connection in others]
