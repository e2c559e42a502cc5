"""An ACP agent for tests of what clients show. Run it as a program.

The first word of a prompt chooses: `streams` prints in a terminal of its own and tells so in `_meta`, `grows` sends
what a command printed so far as content that is replaced, `changes` edits a file. Those that take time wait in the
middle for a file `go` in the session's directory.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

OLD = "".join(f"line {number}\n" for number in range(1, 31))
NEW = OLD.replace("line 12\n", "line twelve\nand one more\n").replace("line 14\n", "")
COLOURED = "\x1b[32mok\x1b[0m 1 \x1b[1mtests/test_one.py\x1b[0m\r\n"
LINES = 4000

_calls = itertools.count(1)
_directories: dict[str, Path] = {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = _answer(message["method"], message.get("params") or {})
            _send({"id": message["id"], "result": result})


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {"promptCapabilities": {}}}
        case "session/new":
            session = f"showing-{next(_calls)}"
            _directories[session] = Path(params["cwd"])
            return {"sessionId": session}
        case "session/prompt":
            word = "".join(block.get("text", "") for block in params["prompt"]).split()[0]
            {"streams": _stream, "grows": _grow, "changes": _change}[word](params["sessionId"])
            return {"stopReason": "end_turn"}
    return {}


def _stream(session: str) -> None:
    call = f"call-{next(_calls)}"
    content = [{"type": "terminal", "terminalId": call}]
    _tool(session, call, title="pytest -q", kind="execute", status="in_progress", content=content, is_new=True)
    _tool(session, call, _meta={"terminal_output": {"terminal_id": call, "data": COLOURED}})
    _tool(session, call, _meta={"terminal_output": {"terminal_id": call, "data": "50 %\r100 %\n\x1b]0;title\x07"}})
    _wait(session)
    for number in range(2, LINES + 1):
        _tool(session, call, _meta={"terminal_output": {"terminal_id": call, "data": f"ok {number}\n"}})
    attack = "<img src=x onerror='window.pwned=1'>\n"
    _tool(session, call, _meta={"terminal_output": {"terminal_id": call, "data": attack}})
    ended = {"terminal_exit": {"terminal_id": call, "exit_code": 1, "signal": None}}
    _tool(session, call, status="completed", _meta=ended)


def _grow(session: str) -> None:
    call = f"call-{next(_calls)}"
    _tool(session, call, title="make", kind="execute", status="in_progress", is_new=True)
    _tool(session, call, content=[_text("```console\nfirst line\n```")])
    _wait(session)
    _tool(session, call, status="completed", content=[_text("```console\nfirst line\nsecond line\n```")])


def _change(session: str) -> None:
    call = f"call-{next(_calls)}"
    diff = {"type": "diff", "path": f"{_directories[session]}/src/lines.txt", "oldText": OLD, "newText": NEW}
    _tool(session, call, title="Edit lines.txt", kind="edit", status="completed", content=[diff], is_new=True)


def _text(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _tool(session: str, call: str, *, is_new: bool = False, **fields: Any) -> None:
    update = {"sessionUpdate": "tool_call" if is_new else "tool_call_update", "toolCallId": call, **fields}
    _send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def _wait(session: str) -> None:
    while not (_directories[session] / "go").exists():
        time.sleep(0.02)


def _send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
