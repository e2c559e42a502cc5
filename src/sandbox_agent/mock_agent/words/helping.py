"""Subagents: sessions that the agent makes by itself."""

from __future__ import annotations

from typing import Any

from sandbox_agent.mock_agent.turn import Turn
from sandbox_agent.mock_agent.version2 import spoken_permission, state
from sandbox_agent.mock_agent.wire import Refusal
from sandbox_agent.mock_agent.words.table import word

_OPTIONS = [
    {"optionId": "yes-once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "no-once", "name": "Reject once", "kind": "reject_once"},
]


@word("subagent TEXT", "gives the text to a subagent, which asks for a permission and says it in a session of its own")
async def subagent(turn: Turn, rest: str) -> None:
    child = f"{turn.session.session_id}-{turn.new_call_id()}"
    turn.update({"sessionUpdate": "subagent_update", "sessionId": child, "title": "Helper"})
    if turn.client.version == 2:
        turn.client.update(child, state("running"))
    answer = await _ask(turn, child)
    _say(turn, child, f"{rest or 'hello'} ({answer})")
    if turn.client.version == 2:
        turn.client.update(child, state("idle", stopReason="end_turn"))
    turn.say(f"The subagent was answered {answer}.")


async def _ask(turn: Turn, child: str) -> str:
    params: dict[str, Any] = {"toolCall": {"toolCallId": "help-1", "title": "Help"}, "options": _OPTIONS}
    asked = spoken_permission(params) if turn.client.version == 2 else params
    try:
        _, answer = turn.client.ask("session/request_permission", {"sessionId": child, **asked})
        outcome = (await answer)["outcome"]
    except Refusal as error:
        return error.message
    return str(outcome.get("optionId", outcome["outcome"]))


def _say(turn: Turn, child: str, text: str) -> None:
    turn.client.update(child, turn.message({"type": "text", "text": text}))
