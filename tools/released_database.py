"""Keeps the database of a version, to test later versions with: `python tools/released_database.py SRC OUT`.

SRC is the `src` folder of that version (`git archive v0.2.0 src | tar x -C /tmp/old`), OUT a new folder such as
`tests/store/released/0.2.0`. A server of that version runs a few turns and is killed; another one is stopped. OUT has
the files of both, and what the server said of them before it ended."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

_META = "sandboxagent.dev"
_PROMPTS = ("hello from an older version", "tool make", "edit a.txt", "plan", "usage", "kinds", "chunks 300 40")


class Old:
    """A client of a server of that version."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=30, trust_env=False)
        self._connection: dict[str, str] = {}
        self._count = 0

    def rpc(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        request = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        response = self._http.post("/v1/rpc", json=request, headers=self._connection)
        self._connection = (
            {"X-ACP-Connection-Id": response.headers["X-ACP-Connection-Id"]} if self._count == 1 else self._connection
        )
        answer: dict[str, Any] = response.json()["result"]
        return answer

    def session(self, cwd: str, prompts: tuple[str, ...], meta: dict[str, Any], servers: list[dict[str, Any]]) -> str:
        params = {"cwd": cwd, "mcpServers": servers, "_meta": {_META: meta}}
        session_id = str(self.rpc("session/new", params)["sessionId"])
        for prompt in prompts:
            words = {"sessionId": session_id, "prompt": [{"type": "text", "text": prompt}]}
            self.rpc("session/prompt", {**words, "_meta": {_META: {"turnId": f"turn of {prompt}"}}})
        return session_id

    def everything(self) -> dict[str, Any]:
        sessions = self._http.get("/v1/sessions").json()["sessions"]
        pages = {one["sessionId"]: self.rpc("_sandboxagent/session/events", one_session(one)) for one in sessions}
        if any(page["hasMore"] for page in pages.values()):
            raise SystemExit("the history is longer than a page")
        return {"sessions": sessions, "events": {name: page["events"] for name, page in pages.items()}}


def one_session(session: dict[str, Any]) -> dict[str, Any]:
    return {"sessionId": session["sessionId"], "limit": 1000}


def keep(source: Path, out: Path, *, end: signal.Signals) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        env = {"PATH": os.environ["PATH"], "HOME": place, "PYTHONPATH": str(source)}
        env |= {"SANDBOX_AGENT_DATA_DIR": f"{place}/data", "SANDBOX_AGENT_MOCK_STATE": f"{place}/mock"}
        command = [sys.executable, "-P", "-m", "sandbox_agent", "server", "--port", "0"]
        server = subprocess.Popen(command, env=env, cwd=home, stdout=subprocess.PIPE, text=True)
        stdout = server.stdout or sys.stdin  # it is a pipe
        old = Old(stdout.readline().strip().removeprefix("listening on "))
        old.rpc("initialize", {"protocolVersion": 1, "_meta": {_META: {"agent": "mock"}}})
        old.session("/", _PROMPTS, {"title": "The first one", "permissionMode": "allow"}, [])
        stdio = {"name": "m", "command": "true", "args": [], "env": []}
        old.session("/var", ("tool rm",), {"permissionMode": "reject"}, [stdio])
        ended = old.session("/", ("goodbye",), {}, [])
        old.rpc("_sandboxagent/session/terminate", {"sessionId": ended})
        said = old.everything()
        server.send_signal(end)
        server.wait()
        stdout.close()
        out.mkdir(parents=True, exist_ok=True)
        (out / "said.json.gz").write_bytes(gzip.compress(json.dumps(said).encode(), mtime=0))
        for file in (home / "data").glob("history.db*"):
            if file.is_file() and not file.name.endswith(("-shm", ".lock")):
                (out / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))


def main(words: list[str]) -> int:
    if len(words) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    source, out = Path(words[0]).resolve(), Path(words[1])
    keep(source, out / "killed", end=signal.SIGKILL)
    keep(source, out / "stopped", end=signal.SIGTERM)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
