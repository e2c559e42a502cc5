"""`sandbox-agent demo`: a real server, one turn of the built-in agent, shown as it streams."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
from rich.console import Console

_CONNECTION = "X-ACP-Connection-Id"
_STYLES = {"agent_message_chunk": "", "agent_thought_chunk": "dim italic"}


def run_demo(*, port: int, keep: bool) -> int:
    """0 when the turn ended as it should."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sandbox-agent-demo-") as home:
        command = [sys.executable, "-m", "sandbox_agent", "server", "--port", str(port), "--log-level", "warning"]
        server = subprocess.Popen([*command, "--data-dir", home], stdout=subprocess.PIPE, text=True)
        try:
            address = _address(server)
            console.print(f"[bold]server[/]   {address}")
            reason = _Demo(address, console).run(cwd=home)
            console.print(f"[bold]server[/]   {address} ran this turn; start your own with: sandbox-agent server")
            if keep:
                console.print("[dim]kept running; Ctrl-C ends it[/]")
                _wait(server)
            return 0 if reason == "end_turn" else 1
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=10)


def _address(server: subprocess.Popen[str]) -> str:
    line = server.stdout.readline().strip() if server.stdout is not None else ""
    if not line.startswith("listening on "):
        raise SystemExit("the server did not start; see above")
    return line.removeprefix("listening on ")


def _wait(server: subprocess.Popen[str]) -> None:
    try:
        server.wait()
    except KeyboardInterrupt:
        pass


class _Demo:
    def __init__(self, address: str, console: Console) -> None:
        self._http = httpx.Client(base_url=address, timeout=60, trust_env=False)
        self._console = console
        self._headers: dict[str, str] = {}
        self._kind = ""

    def run(self, *, cwd: str) -> str:
        """Initialize, open a session, prompt; gives the stop reason."""
        meta = {"_meta": {"sandboxagent.dev": {"agent": "mock"}}}
        opened = self._post("initialize", {"protocolVersion": 1, **meta})
        self._headers[_CONNECTION] = opened.headers[_CONNECTION]
        session = self._post("session/new", {"cwd": cwd, "mcpServers": []}).json()["result"]["sessionId"]
        self._console.print(f"[bold]session[/]  {session}\n[bold]you[/]      demo\n[bold]agent[/]    ", end="")
        reader = threading.Thread(target=self._show_stream, daemon=True)
        reader.start()
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "demo"}]}
        answered = self._post("session/prompt", prompt)
        self._last_event = int(answered.headers["X-ACP-Last-Event-Id"])
        reader.join(timeout=10)
        reason = str(answered.json()["result"]["stopReason"])
        self._console.print(f"\n[bold]stopped[/]  {reason}")
        return reason

    _last_event: int | None = None

    def _post(self, method: str, params: dict[str, Any]) -> httpx.Response:
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        return self._http.post("/v1/rpc", json=message, headers=self._headers).raise_for_status()

    def _show_stream(self) -> None:
        for event_id, message in self._events():
            self._show(message)
            if self._last_event is not None and event_id >= self._last_event:
                return

    def _events(self) -> Iterator[tuple[int, dict[str, Any]]]:
        headers = {**self._headers, "Accept": "text/event-stream"}
        with self._http.stream("GET", "/v1/rpc", headers=headers) as stream:
            event_id = 0
            for line in stream.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    event_id = int(value)
                elif name == "data":
                    yield event_id, msgspec.json.decode(value)

    def _show(self, message: dict[str, Any]) -> None:
        if message.get("method") == "session/request_permission":
            self._allow(message)
        elif message.get("method") == "session/update":
            self._show_update(message["params"]["update"])

    def _show_update(self, update: dict[str, Any]) -> None:
        kind = update["sessionUpdate"]
        if kind in _STYLES:
            if self._kind not in {"", kind}:
                self._console.print("\n         ", end="")
            self._console.print(update["content"].get("text", ""), style=_STYLES[kind], end="", markup=False)
        elif kind in {"tool_call", "tool_call_update"}:
            title = update.get("title") or update["toolCallId"]
            self._console.print(f"\n         [cyan]tool[/] {title} [dim]{update.get('status') or ''}[/]", end="")
        elif kind == "plan":
            for entry in update["entries"]:
                self._console.print(f"\n         [magenta]plan[/] {entry['content']} [dim]{entry['status']}[/]", end="")
        elif kind == "usage_update":
            self._console.print(f"\n         [dim]usage {update.get('used')} of {update.get('size')} tokens[/]", end="")
        else:
            return
        self._kind = kind

    def _allow(self, request: dict[str, Any]) -> None:
        option = next(o for o in request["params"]["options"] if o["kind"] == "allow_once")
        self._console.print(f"\n         [yellow]permission asked[/] → answered: {option['name']}", end="")
        outcome = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": outcome}
        self._http.post("/v1/rpc", json=answer, headers=self._headers).raise_for_status()
