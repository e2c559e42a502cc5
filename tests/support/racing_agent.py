"""An agent that counts its sessions anew in each process and can resume them: `racing_agent.py HOME MANNER`.

What it resumes is the newest conversation of that name. It says whose conversation it is in all it says. A process
after the first one answers the first session/new only when it has been asked to resume something as well (`at once`),
or when HOME/go is there (`slowly`).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

NAMES = {"slowly": "n-{}", "at once": "a-name-of-many-characters-{}"}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(session: str, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


class Racer:
    def __init__(self, home: Path, manner: str) -> None:
        self._home = home
        self._manner = manner
        self._kept = home / "conversations"
        self._births: list[str] = self._kept.read_text().split() if self._kept.exists() else []
        """The name of each conversation, in the order of their births."""
        self._is_first = not self._births
        self._held: dict[str, int] = {}
        self._count = 0
        self._stashed: dict[str, dict[str, Any]] = {}

    def take(self, request: dict[str, Any]) -> None:
        method = request["method"]
        if self._manner == "slowly" or self._is_first or method not in ("session/new", "session/resume"):
            self._serve(request)
            return
        self._stashed[method] = request
        if len(self._stashed) == 2:
            self._is_first = True
            self._serve(self._stashed["session/new"])
            self._serve(self._stashed["session/resume"])

    def _serve(self, request: dict[str, Any]) -> None:
        method, params = request["method"], request.get("params") or {}
        if method == "initialize":
            offered: dict[str, Any] = {"sessionCapabilities": {"resume": {}}}
            send({"id": request["id"], "result": {"protocolVersion": 1, "agentCapabilities": offered}})
        elif method == "session/new":
            (self._home / "making").touch()
            while self._manner == "slowly" and not self._is_first and not (self._home / "go").exists():
                time.sleep(0.01)
            name = self._make()
            say(name, f"{self._held[name]} is born")
            send({"id": request["id"], "result": {"sessionId": name}})
        elif method == "session/resume":
            self._resume(request)
        elif method == "session/prompt":
            name = params["sessionId"]
            say(name, f"{self._held[name]} hears {params['prompt'][0]['text']}")
            send({"id": request["id"], "result": {"stopReason": "end_turn"}})

    def _make(self) -> str:
        self._count += 1
        name = NAMES[self._manner].format(self._count)
        self._births.append(name)
        self._kept.write_text("\n".join(self._births))
        self._held[name] = len(self._births)
        return name

    def _resume(self, request: dict[str, Any]) -> None:
        name = request["params"]["sessionId"]
        newest = len(self._births) - self._births[::-1].index(name)
        self._held[name] = newest
        send({"id": request["id"], "result": {}})
        say(name, f"{newest} is back")


if __name__ == "__main__":
    racer = Racer(Path(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            racer.take(message)
