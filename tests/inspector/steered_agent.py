"""An ACP agent that takes prompts into a turn that runs, as Claude Code and Codex do. Run it as a program.

The turn of the prompt `wait` goes on until `enough` is added to it.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    turn: dict[str, Any] | None = None
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            _answer(
                message, {"protocolVersion": 1, "agentCapabilities": {}, "_meta": {"steering": {"supported": True}}}
            )
        elif method == "session/new":
            _answer(message, {"sessionId": "steered-1"})
        elif method == "session/prompt" and _text(params) == "wait":
            turn = message
            _say(params["sessionId"], "I wait for more.")
        elif method == "session/prompt":
            _say(params["sessionId"], f"A turn of its own: {_text(params)}")
            _answer(message, {"stopReason": "end_turn"})
        elif method == "_session/steering" and turn is None:
            _answer(message, {"outcome": "promptRequired", "reason": "noRunningTurn"})
        elif method == "_session/steering":
            _answer(message, {"outcome": "injected"})
            _say(params["sessionId"], f"Heard: {_text(params)}")
            if turn is not None and _text(params) == "enough":
                _answer(turn, {"stopReason": "end_turn"})
                turn = None


def _text(params: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in params["prompt"]).strip()


def _say(session: str, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    _send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def _answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    _send({"id": request["id"], "result": result})


def _send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
