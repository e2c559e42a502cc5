"""An ACP agent that asks what real ones do now and then, and the built-in one does not. Run it as a program."""

from __future__ import annotations

import base64
import itertools
import json
import struct
import sys
import zlib
from typing import Any

SIZES = [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]
TOPPINGS = ["olive", "onion", "caper"]
FORM = {
    "type": "object",
    "required": ["age", "mail", "toppings"],
    "properties": {
        "age": {"type": "integer", "title": "Age", "minimum": 1, "maximum": 120},
        "mail": {"type": "string", "title": "Mail", "format": "email"},
        "day": {"type": "string", "title": "Day", "format": "date"},
        "size": {"type": "string", "title": "Size", "oneOf": SIZES},
        "toppings": {"type": "array", "title": "Toppings", "maxItems": 2, "items": {"enum": TOPPINGS}},
    },
}
QUESTIONS: dict[str, dict[str, object]] = {
    "bare": {"prompt": "What is it called?"},
    "plain": {"prompt": "Which?", "options": ["red", "blue"]},
    "earlier": {"question_id": "q1", "prompt": "And now?", "options": ["left", "right"], "status": "requested"},
}

_ids = itertools.count(1)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            _send({"id": message["id"], **_answer(message["method"], message.get("params") or {})})


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return _result(protocolVersion=1, agentCapabilities={"promptCapabilities": {"image": True}})
        case "session/new":
            return _result(sessionId=f"asking-{next(_ids)}")
        case "session/prompt":
            word = "".join(block.get("text", "") for block in params["prompt"]).strip()
            _play(params["sessionId"], word)
            return _result(stopReason="end_turn")
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def _result(**members: Any) -> dict[str, Any]:
    return {"result": members}


def _play(session: str, word: str) -> None:
    if word == "form":
        params = {"sessionId": session, "mode": "form", "message": "An order", "requestedSchema": FORM}
        _say(session, json.dumps(_ask("elicitation/create", params), sort_keys=True))
    elif word in QUESTIONS:
        given: dict[str, object] = {"sessionId": session, **QUESTIONS[word]}
        _say(session, json.dumps(_ask("_sandboxagent/session/request_question", given), sort_keys=True))
    elif word == "mixed":
        _say(session, "before the picture")
        _chunk(session, {"type": "image", "mimeType": "image/png", "data": _picture()})
        _say(session, "after the picture")
    else:
        _change(session)


def _change(session: str) -> None:
    """One word in a file of three thousand lines."""
    old = [f"value_{number} = {number}" for number in range(3000)]
    new = [*old[:10], "a_line = True", *old[10:1500], "value_1500 = 'other'", *old[1501:2900], *old[2901:]]
    diff = {"type": "diff", "path": "/tmp/large.py", "oldText": "\n".join(old), "newText": "\n".join(new)}
    call = {"toolCallId": f"call-{next(_ids)}", "title": "Edit large.py", "kind": "edit", "status": "completed"}
    _update(session, {"sessionUpdate": "tool_call", **call, "content": [diff]})


def _picture() -> str:
    rows = b"".join(b"\0" + b"\x20\x80\x60" * 40 for _ in range(30))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 40, 30, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def _ask(method: str, params: dict[str, Any]) -> Any:
    request = next(_ids)
    _send({"id": request, "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == request and "method" not in message:
            return message.get("result") or message.get("error")
    return None


def _say(session: str, text: str) -> None:
    _chunk(session, {"type": "text", "text": text})


def _chunk(session: str, content: dict[str, Any]) -> None:
    _update(session, {"sessionUpdate": "agent_message_chunk", "content": content})


def _update(session: str, update: dict[str, Any]) -> None:
    _send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def _send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
