"""An ACP agent that says one word and then ignores everything, cancels too."""

from __future__ import annotations

import json
import sys


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "initialize":
        send({**answer, "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif method == "session/new":
        send({**answer, "result": {"sessionId": "stubborn"}})
    elif method == "session/prompt":
        content = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "No."}}
        send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "stubborn", "update": content}})
