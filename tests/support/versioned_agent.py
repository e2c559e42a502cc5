"""An agent with a view of its own on protocol versions, as a program: `python versioned_agent.py WORD`.

Whatever it settles on, it answers a prompt with one chunk that says which version it speaks."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

OLD = {"agentCapabilities": {"loadSession": True}, "agentInfo": {"name": "versioned", "version": "1"}}
NEW = {"capabilities": {"session": {}}, "info": {"name": "versioned", "version": "2"}}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session: str, name: str, /, **members: Any) -> None:
    params = {"sessionId": session, "update": {"sessionUpdate": name, **members}}
    send({"method": "session/update", "params": params})


def handshake(word: str, wanted: Any) -> dict[str, Any]:
    """The member with which `initialize` is answered."""

    def unsupported(*supported: int) -> dict[str, Any]:
        data = {"requested": wanted, "supported": list(supported)}
        return {"error": {"code": -32022, "message": "Unsupported protocol version", "data": data}}

    match word:
        case "both":
            return {"result": {"protocolVersion": 2, **NEW} if wanted == 2 else {"protocolVersion": 1, **OLD}}
        case "only-1":
            return {"result": {"protocolVersion": 1, **OLD}}
        case "only-2":
            return {"result": {"protocolVersion": 2, **NEW}} if wanted == 2 else unsupported(2)
        case "echoes":
            return {"result": {"protocolVersion": wanted, **OLD}}
        case "refuses-2":
            return {"result": {"protocolVersion": 1, **OLD}} if wanted == 1 else unsupported(1)
        case "fails-at-2":
            error = {"code": -32602, "message": "Invalid params"}
            return {"result": {"protocolVersion": 1, **OLD}} if wanted == 1 else {"error": error}
        case "only-3":
            return unsupported(3)
        case "says-3":
            return {"result": {"protocolVersion": 3, **NEW}}
        case "text":
            return {"result": "hello"}
        case "date":
            return {"result": {"protocolVersion": "2024-11-05", "capabilities": {}}}
    raise SystemExit(f"no such word: {word}")


class Conversation:
    """What it says in the version that was settled. One prompt at a time; what it waits for is what it was asked to."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._prompts = 0
        self._waiting: dict[str, Any] | None = None

    def prompt(self, request: dict[str, Any]) -> None:
        session, blocks = request["params"]["sessionId"], request["params"]["prompt"]
        self._prompts += 1
        if blocks[0]["text"].startswith("stop-"):
            self._stop_at(int(blocks[0]["text"].removeprefix("stop-")), request)
            return
        if self.version == 2:
            name = f"u{self._prompts}"
            update(session, "user_message", messageId=name, content=blocks)
            update(session, "state_update", state="running")
            send({"id": request["id"], "result": {"messageId": name}})
        self._say(session, f"I speak {self.version}")
        self._waiting = request
        match blocks[0]["text"]:
            case "ask":
                self._ask(session)
            case "wait":
                pass  # for a cancel, or for the end
            case "fail":
                self._end(error={"code": -32603, "message": "it broke"})
            case _:
                self._end("end_turn")

    def _stop_at(self, step: int, request: dict[str, Any]) -> None:
        """Go so far in a turn of version 2, and no further: 0 is before its acknowledgement, 3 before its end."""
        session, name = request["params"]["sessionId"], f"u{self._prompts}"
        if step > 0:
            send({"id": request["id"], "result": {"messageId": name}})
        if step > 1:
            update(session, "user_message", messageId=name, content=request["params"]["prompt"])
            update(session, "state_update", state="running")
        if step > 2:
            self._say(session, "I have said it")

    def answered(self, answer: dict[str, Any]) -> None:
        if self._waiting is None:
            return
        session = self._waiting["params"]["sessionId"]
        if self.version == 2:
            update(session, "state_update", state="running")
        self._say(session, json.dumps(answer.get("result", {}).get("outcome")))
        self._end("end_turn")

    def cancelled(self) -> None:
        self._end("cancelled")

    def _say(self, session: str, text: str) -> None:
        named = {"messageId": f"a{self._prompts}"} if self.version == 2 else {}
        update(session, "agent_message_chunk", content={"type": "text", "text": text}, **named)

    def _ask(self, session: str) -> None:
        call = {"toolCallId": "t", "title": "Touch it", "kind": "edit", "status": "pending"}
        kinds = ("allow_once", "reject_once")
        params: dict[str, Any] = {
            "sessionId": session,
            "options": [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds],
        }
        if self.version == 2:
            update(session, "tool_call_update", **call)
            update(session, "state_update", state="requires_action")
            params |= {"title": "Touch it", "subject": {"type": "tool_call", "toolCall": call}}
        else:
            update(session, "tool_call", **call)
            params["toolCall"] = call
        send({"id": "ask-1", "method": "session/request_permission", "params": params})

    def _end(self, reason: str = "error", *, error: dict[str, Any] | None = None) -> None:
        request, self._waiting = self._waiting, None
        if request is None:
            return
        if self.version == 1:
            send({"id": request["id"], **({"error": error} if error else {"result": {"stopReason": reason}})})
            return
        told: dict[str, Any] = {"error": error} if error else {}
        if reason != "end_turn":  # which it leaves out, as codex does
            told["stopReason"] = reason
        update(request["params"]["sessionId"], "state_update", state="idle", **told)


def main(word: str) -> None:
    sessions = 0
    conversation = Conversation(1)
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method is None:
            conversation.answered(request)
        elif method == "initialize":
            answer = handshake(word, request["params"].get("protocolVersion"))
            conversation = Conversation(2 if "info" in (answer.get("result") or {}) else 1)
            send({"id": request["id"], **answer})
        elif method == "session/new":
            sessions += 1
            send({"id": request["id"], "result": {"sessionId": f"s{os.getpid()}-{sessions}"}})
        elif method == "session/prompt":
            conversation.prompt(request)
        elif method == "session/cancel":
            conversation.cancelled()
        elif "id" in request:
            send({"id": request["id"], "result": {}})


if __name__ == "__main__":
    main(sys.argv[1])
