"""An agent that notes every request it gets: `python noting_agent.py FILE INITIALIZE`, both for the test to choose.

`INITIALIZE` is its answer to `initialize`, as JSON. The prompt `die` kills it, `title JSON` makes that the session's
title, `ask JSON` asks `_sandboxagent/session/request_question` with these params and says the answer as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(notes: Path, initialized: dict[str, Any]) -> None:
    sessions = 0
    for line in sys.stdin:
        message = json.loads(line)
        with notes.open("a") as file:
            file.write(json.dumps(message) + "\n")
        if "method" not in message:
            continue
        params = message.get("params") or {}
        result: dict[str, Any] = {}
        match message["method"]:
            case "initialize":
                result = initialized
            case "session/new":
                sessions += 1
                result = {"sessionId": f"noted-{os.getpid()}-{sessions}"}
            case "session/prompt":
                result = {"stopReason": "end_turn"}
                on_prompt(params["sessionId"], params["prompt"][0]["text"])
        if "id" in message:
            send({"id": message["id"], "result": result})


def on_prompt(session: str, text: str) -> None:
    word, _, rest = text.partition(" ")
    if word == "die":
        os._exit(3)
    elif word == "title":
        update(session, sessionUpdate="session_info_update", title=json.loads(rest))
    elif word == "ask":
        params = {"sessionId": session, **json.loads(rest)}
        send({"id": "asked", "method": "_sandboxagent/session/request_question", "params": params})
        answer = json.loads(sys.stdin.readline())
        said = {"type": "text", "text": json.dumps(answer.get("result", answer.get("error")))}
        update(session, sessionUpdate="agent_message_chunk", content=said)


def update(session: str, **fields: Any) -> None:
    send({"method": "session/update", "params": {"sessionId": session, "update": fields}})


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
