"""An ACP agent with slash commands that OpenCode has words for: `python commanding_agent.py NAME…` offers these.

It says what it remembers of the conversation after every prompt; `/undo` makes it forget the last one, `hang` waits
until it is cancelled."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

_sessions = itertools.count(1)
_remembered: dict[str, list[str]] = {}


def main(commands: list[str]) -> None:
    hanging: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "session/cancel" and hanging is not None:
            _send({"id": hanging, "result": {"stopReason": "cancelled"}})
            hanging = None
        if "id" not in message or "method" not in message:
            continue
        params = message.get("params") or {}
        match message["method"]:
            case "initialize":
                _send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
            case "session/new":
                session = f"commanded-{next(_sessions)}"
                _send({"id": message["id"], "result": {"sessionId": session}})
                offered = [{"name": name, "description": f"The command {name}"} for name in commands]
                _update(session, sessionUpdate="available_commands_update", availableCommands=offered)
            case "session/prompt":
                words = params["prompt"][0]["text"]
                if words == "hang":
                    hanging = message["id"]
                    continue
                _update(params["sessionId"], sessionUpdate="agent_message_chunk", content=_said(params, words))
                _send({"id": message["id"], "result": {"stopReason": "end_turn"}})
            case _:
                _send({"id": message["id"], "result": {}})


def _said(params: dict[str, Any], words: str) -> dict[str, Any]:
    remembered = _remembered.setdefault(params["sessionId"], [])
    if words == "/undo":
        remembered[-1:] = []
    else:
        remembered.append(words)
    return {"type": "text", "text": f"remembered: {' '.join(remembered)}"}


def _update(session: str, **update: Any) -> None:
    _send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
