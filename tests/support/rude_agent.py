"""An agent without manners, as a program: `python rude_agent.py WORD`. It answers the handshake, then misbehaves."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: Any) -> None:
    send({"id": request["id"], "result": result})


def on_prompt(word: str, request: dict[str, Any]) -> None:
    session = request["params"]["sessionId"]
    if word == "garbage":
        for _ in range(100):
            sys.stdout.write("no json\n" * 1024)
        sys.stdout.flush()
    elif word == "last-words":
        sys.stdout.write("this is no json\n")
        sys.stdout.flush()
    elif word == "asks":
        for number in range(3000):
            call = {"toolCallId": f"{number}", "title": "x" * 1000}
            options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
            params = {"sessionId": session, "toolCall": call, "options": options}
            send({"id": f"ask-{number}", "method": "session/request_permission", "params": params})
    elif word == "reads":
        path = request["params"]["prompt"][0]["text"]
        for number in range(40):
            send({"id": number, "method": "fs/read_text_file", "params": {"sessionId": session, "path": path}})
        time.sleep(600)
    elif word == "kinds":
        for number in range(60_000):
            update = {"sessionUpdate": "tool_call", "toolCallId": f"{number:0200d}", "title": "t", "kind": "read"}
            send({"method": "session/update", "params": {"sessionId": session, "update": update}})
    elif word in ("counts-anew", "keeps"):
        say(session, f"{session} hears {request['params']['prompt'][0]['text']}")
    answer(request, {"stopReason": "end_turn"})


def say(session: str, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def main(word: str) -> None:
    sessions = 0
    can_resume = word in ("counts-anew", "same", "keeps")
    asked_to_close: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            offered: dict[str, Any] = {"sessionCapabilities": {"resume": {}, "close": {}}} if can_resume else {}
            answer(request, {"protocolVersion": 1, "agentCapabilities": offered})
        elif method == "session/new":
            sessions += 1
            name = "rude-1" if word == "same" else f"rude-{sessions}"
            if word == "early":
                for number in range(1000):
                    say(f"never-{number}", "x" * 100_000)
            if word == "counts-anew":
                say(name, f"{name} is born")
            answer(request, {"sessionId": name})
            if word == "deaf":
                time.sleep(600)
        elif method == "session/prompt":
            on_prompt(word, request)
        elif word == "keeps" and method == "session/close":
            asked_to_close = request
            say(request["params"]["sessionId"], "asked to close")
        elif method in ("_rude/close", "_rude/refuse"):
            is_refused = method == "_rude/refuse"
            outcome = {"error": {"code": -32000, "message": "not now"}} if is_refused else {"result": {}}
            send({"id": asked_to_close["id"], **outcome})
            answer(request, {})
        elif "id" in request and method is not None:
            answer(request, {})


if __name__ == "__main__":
    main(sys.argv[1])
