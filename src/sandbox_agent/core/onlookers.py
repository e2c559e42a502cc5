"""What those see of a turn who watch the session while another client prompts."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from sandbox_agent.core import frames
from sandbox_agent.core.effects import Deliver, Effect
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import ConnectionId
from sandbox_agent.core.route import Call, Route

TURN_ENDED = "_sandboxagent/session/turn_ended"


class _PromptParams(msgspec.Struct):
    prompt: list[Raw] = []


def show_prompt(route: Route, call: Call) -> list[Effect]:
    """The prompt, as an agent would replay it."""
    others = _others(route, call)
    if not others:
        return []
    try:
        blocks = msgspec.json.decode(frames.params_of(call.line), type=_PromptParams).prompt
    except msgspec.MsgspecError:
        return []
    meta = {META: {"promptedBy": call.connection}}
    updates = [{"sessionUpdate": "user_message_chunk", "content": block, "_meta": meta} for block in blocks]
    lines = [frames.notification("session/update", {"sessionId": call.session, "update": update}) for update in updates]
    return [Deliver(connection, line, route.session) for line in lines for connection in others]


def show_end(route: Route, call: Call, answer: bytes) -> list[Effect]:
    """How the turn ended: its answer goes to the one that prompted, and to nobody else."""
    others = _others(route, call)
    if not others:
        return []
    name = "error" if frames.member(answer, "error") is not None else "result"
    outcome = Raw(frames.member(answer, name) or b"null")
    params = {"sessionId": route.session, "promptedBy": call.connection, name: outcome}
    line = frames.notification(TURN_ENDED, params)
    return [Deliver(connection, line, route.session) for connection in others]


def _others(route: Route, call: Call) -> list[ConnectionId]:
    return [connection for connection in route.connections if connection != call.connection]
