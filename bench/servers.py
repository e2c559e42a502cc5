"""The servers that are compared: each can be started, asked for conversations, and weighed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from bench.workshop import CACHE, build_program, find_peer, keep_priority

TOKEN = "bench-token"


@dataclass(frozen=True)
class Conversation:
    """One session, reached through one connection."""

    path: str
    headers: tuple[tuple[str, str], ...]
    session: str

    def post(self, message: dict[str, Any]) -> bytes:
        """A whole HTTP request that sends `message`."""
        body = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        return (
            self._head("POST", "application/json", f"content-type: application/json\r\ncontent-length: {len(body)}")
            + body
        )

    def stream(self, after: int | None = None) -> bytes:
        """A whole HTTP request for the event stream."""
        return self._head("GET", "text/event-stream", "" if after is None else f"last-event-id: {after}")

    def echo(self, key: int) -> bytes:
        """A request in the session that the agent answers at once."""
        return self.post({"id": key, "method": "_bench/echo", "params": {"sessionId": self.session}})

    def prompt(self, text: str, key: int = 1_000_000) -> bytes:
        content = [{"type": "text", "text": text}]
        return self.post(
            {"id": key, "method": "session/prompt", "params": {"sessionId": self.session, "prompt": content}}
        )

    def _head(self, verb: str, accept: str, more: str) -> bytes:
        lines = [f"{verb} {self.path} HTTP/1.1", "host: 127.0.0.1", f"accept: {accept}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += [more] if more else []
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Server:
    """A server process in a folder of its own. Use `running()`."""

    name = ""
    label = ""
    is_ours = False
    start_patience = 30.0

    def __init__(self) -> None:
        self.port = 0
        self.folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._keys = count(1)

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def start(self) -> float:
        """Start, and give the seconds until the first 200 on health."""
        self.prepare_folder()
        self.port = _free_port()
        with (self.folder / "log").open("wb") as log:
            began = time.perf_counter()
            self._process = subprocess.Popen(
                self.command(), env=self.environment(), stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        keep_priority(self._process.pid)
        while time.perf_counter() - began < self.start_patience:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.call("GET", "/v1/health")[0] == 200:
                    return time.perf_counter() - began
            if self._process.poll() is not None:
                break
            time.sleep(0.002)
        raise RuntimeError(f"{self.name} did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def prepare_folder(self) -> None:
        """A folder of its own, which `stop` takes away."""
        (CACHE / "run").mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=CACHE / "run"))

    def terminate(self, patience: float) -> bool:
        """Ask it to end; say whether it has in time. What it leaves behind stays to be looked at until `stop`."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                return False
        return True

    def stop(self) -> None:
        if self._process is not None and not self.terminate(3):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(5)
        _end_children_of(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        raise NotImplementedError

    def converse(self) -> Conversation:
        """A new session on a new connection."""
        raise NotImplementedError

    @property
    def auth(self) -> dict[str, str]:
        return {}

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.pid

    def call(
        self, verb: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(verb, path, body=body, headers={**self.auth, **(headers or {})})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()
        finally:
            connection.close()

    def rpc(self, path: str, method: str, params: Any, headers: dict[str, str]) -> tuple[Any, dict[str, str]]:
        message = {"jsonrpc": "2.0", "id": next(self._keys), "method": method, "params": params}
        sent = {"content-type": "application/json", "accept": "application/json", **headers}
        status, found, body = self.call("POST", path, json.dumps(message), sent)
        answer = json.loads(body)
        if status != 200 or "result" not in answer:
            raise RuntimeError(f"{self.name}: {method}: {status} {body[:500]!r}")
        return answer["result"], found

    def cpu(self) -> float:
        """Seconds of CPU that the server process itself has used (its agents do not count)."""
        total = 0
        for stat in Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ProcessLookupError):
                total += int(stat.read_text().split()[0])
        return total / 1e9

    def memory(self, field: str = "VmRSS") -> float:
        """Megabytes in memory now, or at most (`VmHWM`), of the server process itself."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(field)

    def all_memory(self) -> float:
        """Megabytes of the server and everything that it has started (proportional where shared)."""
        return sum(_pss(pid) for pid in process_tree(self.pid)) / 1024

    def process_count(self) -> int:
        return len(process_tree(self.pid))


class Ours(Server):
    is_ours = True

    def __init__(self, store: str = "sqlite", *, source: Path | None = None, flags: tuple[str, ...] = ()) -> None:
        """`source` is another tree of ours to run, for comparisons; `flags` are more flags for the server."""
        super().__init__()
        self.store = store
        self.source = source
        self.flags = flags
        self.name = "ours" if store == "sqlite" else f"ours-{store}"
        self.label = "ours, history on" if store == "sqlite" else "ours, history off"

    def command(self) -> list[str]:
        config = self.folder / "config.toml"
        shared = 'isolation = "process"\n' if self._knows_isolation() else ""
        config.write_text(f'[agents.stub]\ncommand = ["{build_program("stub_agent")}"]\n{shared}')
        program = Path(sys.executable).parent / "sandbox-agent"
        options = ["--port", str(self.port), "--config", str(config), "--store", self.store, *self.flags]
        return [str(program), "server", *options]

    def _knows_isolation(self) -> bool:
        """Whether the tree can be told that sessions may share the stub's process, as those of good agents do."""
        if self.source is None:
            return True
        return "Isolation" in (self.source / "sandbox_agent/core/launch.py").read_text()

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        if self.source is not None:
            kept["PYTHONPATH"] = str(self.source)
        return {**kept, "SANDBOX_AGENT_TOKEN": TOKEN, "SANDBOX_AGENT_DATA_DIR": str(self.folder / "data")}

    @property
    def auth(self) -> dict[str, str]:
        return {"authorization": f"Bearer {TOKEN}"}

    def connect(self, agent: str = "stub") -> tuple[tuple[str, str], ...]:
        meta = {"sandboxagent.dev": {"agent": agent}}
        _, found = self.rpc("/v1/rpc", "initialize", {"protocolVersion": 1, "_meta": meta}, {})
        return (*self.auth.items(), ("x-acp-connection-id", found["x-acp-connection-id"]))

    def converse(self, headers: tuple[tuple[str, str], ...] = ()) -> Conversation:
        headers = headers or self.connect()
        result, _ = self.rpc("/v1/rpc", "session/new", {"cwd": "/tmp", "mcpServers": []}, dict(headers))
        return Conversation("/v1/rpc", headers, result["sessionId"])


class OursPlain(Ours):
    """Without `http/direct.py`: what the shortcut past ASGI buys."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "ours-plain"
        self.label = "ours, plain ASGI"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "SANDBOX_AGENT_DIRECT_HTTP": "false"}


class OursAtAcp(Ours):
    """Through the door `/acp`, where a POST is accepted and its answer is an event."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "ours-acp"
        self.label = "ours, /acp"

    def connect(self, agent: str = "stub") -> tuple[tuple[str, str], ...]:
        meta = {"sandboxagent.dev": {"agent": agent}}
        _, found = self.rpc("/acp", "initialize", {"protocolVersion": 1, "_meta": meta}, {})
        return (*self.auth.items(), ("acp-connection-id", found["acp-connection-id"]))

    def converse(self, headers: tuple[tuple[str, str], ...] = ()) -> Conversation:
        headers = headers or self.connect()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/acp", headers={**dict(headers), "accept": "text/event-stream"})
            stream = connection.getresponse()
            message = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}
            self.call("POST", "/acp", json.dumps(message), {**dict(headers), "content-type": "application/json"})
            while not (line := stream.readline()).startswith(b"data:"):
                if not line:
                    raise RuntimeError("the stream ended before session/new was answered")
            session = json.loads(line[5:])["result"]["sessionId"]
        finally:
            connection.close()
        return Conversation("/acp", (*headers, ("acp-session-id", session)), session)


class OursAsPeer(Ours):
    """Through the door that speaks as the peer does."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "ours-as-peer"
        self.label = "ours, /v1/acp"

    def converse(self, headers: tuple[tuple[str, str], ...] = ()) -> Conversation:
        path = f"/v1/acp/bench-{next(self._keys)}"
        self.rpc(f"{path}?agent=stub", "initialize", {"protocolVersion": 1}, {})
        result, _ = self.rpc(path, "session/new", {"cwd": "/tmp", "mcpServers": []}, {})
        return Conversation(path, tuple(self.auth.items()), result["sessionId"])


class Peer(Server):
    def __init__(self, *, is_quiet: bool = False) -> None:
        super().__init__()
        self.is_quiet = is_quiet
        self.name = "peer-quiet" if is_quiet else "peer"
        self.label = "peer, logs off" if is_quiet else "peer"

    def command(self) -> list[str]:
        binary = find_peer()
        if binary is None:
            raise RuntimeError("the peer cannot be installed here")
        agents = self.folder / "data" / "sandbox-agent" / "bin"
        (agents / "agent_processes").mkdir(parents=True)
        for place in (agents / "agent_processes" / "codex-acp", agents / "codex"):
            place.symlink_to(build_program("stub_agent"))
        return [str(binary), "server", "--no-token", "--no-telemetry", "-p", str(self.port)]

    def environment(self) -> dict[str, str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder / "data")}
        env["SANDBOX_AGENT_REQUIRE_PREINSTALL"] = "1"
        return {**env, "RUST_LOG": "off", "SANDBOX_AGENT_LOG_HTTP": "0"} if self.is_quiet else env

    def converse(self) -> Conversation:
        path = f"/v1/acp/bench-{next(self._keys)}"
        self.rpc(f"{path}?agent=codex", "initialize", {"protocolVersion": 1}, {})
        result, _ = self.rpc(path, "session/new", {"cwd": "/tmp", "mcpServers": []}, {})
        return Conversation(path, (), result["sessionId"])


def _free_port() -> int:
    """Below those that the system gives out: what else runs here must not take it while our server starts."""
    for _ in range(100):
        port = random.randint(10_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port was found")


def process_tree(root: int) -> list[int]:
    """The process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ProcessLookupError):
            pid, _, rest = stat.read_text().partition(" ")
            parents.setdefault(int(rest.rpartition(")")[2].split()[1]), []).append(int(pid))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _end_children_of(folder: Path) -> None:
    """End agents that a server has left behind: they still have its folder as theirs."""
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError, ProcessLookupError):
            if link.readlink() == folder:
                os.kill(int(link.parent.name), signal.SIGKILL)
