"""What people feel: commands, long histories, many sessions, the first turn, a WebSocket, an audience."""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import load
from bench.load import Figures
from bench.prompts import begin_prompts, run_prompt
from bench.scenarios.streams import TEXT, EventsLost
from bench.servers import TOKEN, Conversation, Ours, Server

_COMMAND = str(Path(sys.executable).with_name("sandbox-agent"))
_COMMANDS = {
    "help_ms": [_COMMAND, "--help"],
    "version_ms": [_COMMAND, "--version"],
    "agents_list_ms": [_COMMAND, "agents", "list"],
    "run_ms": [_COMMAND, "run", "--agent", "mock", "hello"],
    "import_ms": [sys.executable, "-c", "from sandbox_agent import SandboxAgent"],
}


def run_commands(server: Server, *, times: int = 5) -> Figures:
    """Commands of the terminal, each by itself, from start to exit; the median. The folder is new for each figure."""
    server.port = 0
    figures: Figures = {}
    for name, command in _COMMANDS.items():
        server.prepare_folder()
        try:
            environment = server.environment()
            figures[name] = statistics.median(_seconds(command, environment) for _ in range(times)) * 1000
        finally:
            server.stop()
    return figures


def open_history(server: Ours, *, events: int) -> Figures:
    """A client that loads a session with so many events: until it has them all."""
    with server.running():
        conversation = server.converse()
        run_prompt(server, conversation, f"flood {events} {TEXT}")
        reader = Conversation(conversation.path, server.connect(), conversation.session)
        params = {"sessionId": reader.session, "cwd": "/tmp", "mcpServers": []}
        request = reader.post({"id": 1, "method": "session/load", "params": params})
        with socket.create_connection(("127.0.0.1", server.port)) as asking:
            began = 0.0

            def begin() -> None:
                nonlocal began
                began = time.perf_counter()
                asking.sendall(request)

            figures = load.read_streams(server.port, [reader.stream()], expected=events, begin=begin, idle_ms=10_000)
            seconds = time.perf_counter() - began
        _require_all(server, figures)
        return {"ms": seconds * 1000, "us_each": seconds / events * 1e6}


def list_sessions(server: Ours, *, sessions: int) -> Figures:
    """A page of `session/list` with so many sessions in the store."""
    with server.running():
        headers = server.connect()
        for _ in range(sessions):
            server.converse(headers)
        taken = []
        for _ in range(9):
            began = time.perf_counter()
            server.rpc("/v1/rpc", "session/list", {}, dict(headers))
            taken.append(time.perf_counter() - began)
        return {"ms": statistics.median(taken) * 1000, "memory_mb": server.memory()}


def first_answer(server: Ours) -> Figures:
    """A server that has just started, and its built-in agent: from the first request to the first event of the first
    turn in the hands of the client, and to its end."""
    with server.running():
        began = time.perf_counter()
        headers = server.connect("mock")
        result, _ = server.rpc("/v1/rpc", "session/new", {"cwd": "/tmp", "mcpServers": []}, dict(headers))
        conversation = Conversation("/v1/rpc", headers, result["sessionId"])
        with socket.create_connection(("127.0.0.1", server.port)) as reading:
            reading.settimeout(30)
            reading.sendall(conversation.stream())
            with ThreadPoolExecutor(1) as asking:
                turn = asking.submit(run_prompt, server, conversation, "hello")
                received = b""
                while b"agent_message_chunk" not in received:
                    received += reading.recv(65536)
                first = time.perf_counter() - began
                turn.result()
        return {"event_ms": first * 1000, "ms": (time.perf_counter() - began) * 1000}


def audience(server: Server, *, clients: int, events: int) -> Figures:
    """One session with so many attached clients, each reading all of it: the cost of one event for one of them.

    Clients of the peer have one connection between them, and read it side by side."""
    with server.running():
        first = server.converse()
        others = range(clients - 1)
        readers = [first, *(_attached(server, first) if isinstance(server, Ours) else first for _ in others)]
        before = server.cpu()
        with begin_prompts(server, [first], f"flood {events} {TEXT}") as begin:
            streams = [reader.stream() for reader in readers]
            idle_ms = 10_000 if server.is_ours else 1500
            figures = load.read_streams(server.port, streams, expected=events, begin=begin, idle_ms=idle_ms)
        if server.is_ours:
            _require_all(server, figures)
        return {
            "rate": figures["events"] / figures["seconds"],
            "cpu_us": (server.cpu() - before) / figures["events"] * 1e6,
            "lost_share": figures["missing"] / (clients * events),
        }


def _attached(server: Ours, to: Conversation) -> Conversation:
    headers = server.connect()
    server.rpc("/v1/rpc", "session/resume", {"sessionId": to.session, "cwd": "/tmp"}, dict(headers))
    return Conversation(to.path, headers, to.session)


def over_websocket(server: Ours, *, times: int) -> Figures:
    """Round trips over one WebSocket at `/acp`. The client is in Python, so it has its part in the time."""
    from websockets.sync.client import connect  # noqa: PLC0415 (only here)

    with server.running():
        address = f"ws://127.0.0.1:{server.port}/acp?agent=stub"
        with connect(address, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as wire:

            def ask(key: int, method: str, params: dict[str, object]) -> dict[str, str]:
                wire.send(json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params}))
                while (answer := json.loads(wire.recv(30))).get("id") != key or "method" in answer:
                    pass
                result: dict[str, str] = answer["result"]
                return result

            ask(1, "initialize", {"protocolVersion": 1})
            session = ask(2, "session/new", {"cwd": "/tmp", "mcpServers": []})["sessionId"]
            before, began = server.cpu(), time.perf_counter()
            for key in range(3, 3 + times):
                ask(key, "_bench/echo", {"sessionId": session})
            seconds = time.perf_counter() - began
            return {"rate": times / seconds, "cpu_us": (server.cpu() - before) / times * 1e6}


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(
        command, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60
    )
    return time.perf_counter() - began


def _require_all(server: Server, figures: Figures) -> None:
    if figures["missing"] or figures["doubled"]:
        raise EventsLost(f"{server.label}: {figures}")
