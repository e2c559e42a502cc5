"""An agent that calls the first session of each process `twin`: `python twin_agent.py FOLDER`.

By that name it means the newest session, as its folder has it. The first session is answered for late, so that another
process may have named one meanwhile.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 2.0


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def born(folder: Path) -> str:
    """The number of a new session. The first waits for a second, if there is to be one."""
    number = 1
    while True:
        try:
            (folder / f"birth{number}").touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            break
    (folder / "twin").write_text(str(number))
    until = time.monotonic() + PATIENCE
    while number == 1 and not (folder / "birth2").exists() and time.monotonic() < until:
        time.sleep(0.01)
    if number == 1 and (folder / "birth2").exists():
        time.sleep(0.3)  # its answer goes first
    return str(number)


def main(folder: Path) -> None:
    birth = ""
    for line in sys.stdin:
        request = json.loads(line)
        result: dict[str, Any] = {}
        match request.get("method"):
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"resume": {}}}}
            case "session/new":
                birth = born(folder)
                result = {"sessionId": "twin", "_meta": {"birth": birth}}
            case "session/resume":
                birth = (folder / "twin").read_text()
            case "session/prompt":
                update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"I am {birth}"}}
                send({"method": "session/update", "params": {"sessionId": "twin", "update": update}})
                result = {"stopReason": "end_turn"}
        if "id" in request and "method" in request:
            send({"id": request["id"], "result": result})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
