"""One update of each kind."""

from __future__ import annotations

import base64
from typing import Any

from sandbox_agent.mock_agent.turn import Turn
from sandbox_agent.mock_agent.words.table import word

_TEXT = {"type": "text", "text": "some words"}


@word("kinds", "sends one update of each kind that the spoken version knows, unstable ones too, then says `done`")
async def send_kinds(turn: Turn, rest: str) -> None:
    for update in _shared(turn):
        turn.update(update)
    if turn.client.version == 2:
        for update in _only_in_version_2(turn):
            turn.update(update)
    turn.say("done")


def _shared(turn: Turn) -> list[dict[str, Any]]:
    child = {"sessionId": f"{turn.session.session_id}-child"}
    compaction = {"compactionId": "compaction-1"}
    message = {"messageId": f"between-{turn.number}"}
    plan = {"planId": "second"}
    return [
        {"sessionUpdate": "notice", "severity": "warning", "title": "The disk is nearly full"},
        {"sessionUpdate": "compaction_update", **compaction, "status": "in_progress"},
        {"sessionUpdate": "compaction_summary_chunk", **compaction, "content": _TEXT},
        {"sessionUpdate": "compaction_update", **compaction, "status": "completed", "summary": [_TEXT]},
        {"sessionUpdate": "plan_update", "plan": {"type": "markdown", **plan, "content": "# A plan"}},
        {"sessionUpdate": "plan_removed", **plan},
        {"sessionUpdate": "subagent_update", **child, "title": "A helper", "state": {"state": "running"}},
        {"sessionUpdate": "session_message", **message, "recipientSessionId": child["sessionId"], "content": [_TEXT]},
        {"sessionUpdate": "session_message_chunk", **message, "content": _TEXT},
        {"sessionUpdate": "session_info_update", "title": turn.session.title or "Kinds"},
        {"sessionUpdate": "config_option_update", "configOptions": turn.session.describe_config()},
        {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}},
    ]


def _only_in_version_2(turn: Turn) -> list[dict[str, Any]]:
    call = {"toolCallId": turn.new_call_id()}
    terminal = {"terminalId": f"background-{turn.number}"}
    whole, thought = {"messageId": f"whole-{turn.number}"}, {"messageId": f"whole-thought-{turn.number}"}
    item = {"type": "content", "content": _TEXT}
    changes = [
        {"operation": "move", "oldPath": "/tmp/old.txt", "path": "/tmp/new.txt"},  # noqa: S108 (only a name)
        {"operation": "delete", "path": "/tmp/gone.bin", "fileType": "binary"},  # noqa: S108
    ]
    encoded = base64.b64encode(b"listening on port 1\n").decode()
    background = [{"type": "terminal", **terminal}, {"type": "_own"}]
    return [
        {"sessionUpdate": "agent_thought", **thought, "content": [_TEXT]},
        {"sessionUpdate": "agent_message", **whole, "content": [_TEXT, _TEXT]},
        {"sessionUpdate": "agent_message", **whole, "content": None},
        {"sessionUpdate": "tool_call_update", **call, "name": "watch", "title": "Watch", "kind": "_watch"},
        {"sessionUpdate": "tool_call_content_chunk", **call, "content": item},
        {"sessionUpdate": "tool_call_content_chunk", **call, "content": {"type": "diff", "changes": changes}},
        {"sessionUpdate": "tool_call_update", **call, "status": "paused", "capabilities": {"cancel": {}}},
        {"sessionUpdate": "tool_call_update", **call, "status": "cancelled", "title": None},
        {"sessionUpdate": "terminal_update", **terminal, "command": "serve", "cwd": turn.session.cwd},
        {"sessionUpdate": "terminal_output_chunk", **terminal, "data": encoded},
        {"sessionUpdate": "terminal_update", **terminal, "output": {"data": encoded}},
        {"sessionUpdate": "state_update", "state": "running", "background": background},
        {"sessionUpdate": "_mock_kind", "anything": [1, 2, 3]},
    ]
