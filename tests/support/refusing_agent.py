"""An agent that opens no session, as a program: `refusing_agent.py JSON` answers `session/new` with that error."""

from __future__ import annotations

import json
import sys


def main(error: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("method") == "initialize":
            answer = {"result": {"protocolVersion": 1, "agentCapabilities": {}}}
        else:
            answer = {"error": json.loads(error)}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
