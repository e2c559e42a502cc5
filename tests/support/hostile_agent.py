"""An agent that never stops misbehaving, as a program: `python hostile_agent.py KIND [PAUSE]`.

It answers the handshake and makes sessions. From the first prompt on it does what its kind says, with PAUSE seconds in
between (0 by default: as fast as anybody takes it), until its stdin ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Step = Callable[[str, int], None]
"""What a kind does once: it gets the session, and how often it has been done before."""


def send(message: dict[str, Any]) -> None:
    _write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())


def answer(request: dict[str, Any], result: Any) -> None:
    send({"id": request["id"], "result": result})


def babble(session: str, count: int) -> None:
    _write(b"this is no message\n" * 1000)


def shout(session: str, count: int) -> None:
    _write(b'{"jsonrpc":"2.0","method":"session/update","params":"' + b"x" * (2 << 20) + b'"}\n')


def never_end_a_line(session: str, count: int) -> None:
    _write(b"x" * (1 << 20))


def ask_permission(session: str, count: int) -> None:
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": session, "toolCall": {"toolCallId": f"{count}", "title": "x" * 1000}, "options": options}
    send({"id": f"ask-{count}", "method": "session/request_permission", "params": params})


def speak_for_strangers(session: str, count: int) -> None:
    for number in range(100):
        _update(f"stranger-{count}-{number}", "x" * 1000)


def crash(session: str, count: int) -> None:
    os._exit(3)


def fill_stderr(session: str, count: int) -> None:
    os.write(2, b"panic: \x1b[31mnot a line of the log\r" + b"e" * 200 + b"\n" * 100)


def answer_nobody(session: str, count: int) -> None:
    for number in (count, None, str(count), -1, 1e300):
        send({"id": number, "result": {}})
        send({"id": number, "error": {"code": "no number", "message": None}})


def nest(session: str, count: int) -> None:
    depth = 10_000
    _write(b'{"jsonrpc":"2.0","method":"session/update","params":' + b"[" * depth + b"]" * depth + b"}\n")
    _write(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"\xff\xfe"}}\n')
    _update(session, {"type": None})
    send({"method": "session/update", "params": {"sessionId": session, "update": [session]}})


def demand_files(session: str, count: int) -> None:
    """And read no answer."""
    send({"id": count, "method": "fs/read_text_file", "params": {"sessionId": session, "path": sys.executable}})
    send({"id": -count, "method": "fs/read_text_file", "params": {"sessionId": session, "path": "/etc/services"}})


def flood(session: str, count: int) -> None:
    for _ in range(100):
        _update(session, "x" * 100)


KINDS: dict[str, Step | None] = {
    "babbling": babble,
    "shouting": shout,
    "breathless": never_end_a_line,
    "asking": ask_permission,
    "impostor": speak_for_strangers,
    "crashing": crash,
    "panicking": fill_stderr,
    "confused": answer_nobody,
    "nesting": nest,
    "demanding": demand_files,
    "flooding": flood,
    "deaf": None,
}
_DEAF = {"deaf", "demanding"}
"""These do not read any more once they have been prompted."""


def main(kind: str, pause: float) -> None:
    sessions = 0
    step = KINDS[kind]
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            answer(request, {"protocolVersion": 1, "agentCapabilities": {}})
        elif method == "session/new":
            sessions += 1
            answer(request, {"sessionId": f"{kind}-{os.getpid()}-{sessions}"})
        elif method == "session/prompt":
            if step is not None:
                threading.Thread(target=_misbehave, args=(step, request["params"]["sessionId"], pause)).start()
            if kind in _DEAF:
                threading.Event().wait()
    os._exit(0)


def _misbehave(step: Step, session: str, pause: float) -> None:
    count = 0
    while True:
        step(session, count)
        count += 1
        time.sleep(pause)


def _update(session: str, text: Any) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def _write(content: bytes) -> None:
    while content:
        content = content[os.write(1, content) :]


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
