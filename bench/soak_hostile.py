"""Who makes a soak hard: agents that misbehave without end, and clients that do what no client should.

None of them may be felt by others. They keep the one promise that is theirs too: whatever they send whole is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from bench.servers import TOKEN, Ours
from bench.soak_client import DEADLINE, Wrong
from bench.workshop import ROOT

BOUND_MS = 20_000
"""After this the server itself answers what an agent does not: well before our clients call it unanswered."""
PROGRAM = ROOT / "tests" / "support" / "hostile_agent.py"
PAUSES = {
    "babbling": 1.0,
    "shouting": 10.0,
    "breathless": 1.0,
    "asking": 0.2,
    "impostor": 1.0,
    "crashing": 1.0,
    "panicking": 0.5,
    "confused": 0.2,
    "nesting": 1.0,
    "demanding": 0.5,
    "flooding": 1.0,
    "deaf": 1.0,
}
"""Seconds between two misdeeds of each kind: an hour of them must fit a disk, and leave the machine to others."""


class HostileOurs(Ours):
    """Our server with an agent of every hostile kind beside the good one."""

    def command(self) -> list[str]:
        command = super().command()
        path = self.folder / "config.toml"
        path.write_text(f"acp_request_timeout_ms = {BOUND_MS}\n" + path.read_text())
        with path.open("a") as config:
            for kind, pause in PAUSES.items():
                program = [sys.executable, str(PROGRAM), kind, str(pause)]
                config.write(f"[agents.{kind}]\ncommand = {json.dumps(program)}\n")
        return command


async def provoke(port: int, kind: str, until: float, acts: Counter[str]) -> None:
    """A client of a hostile agent: a session, a prompt, a while of what comes of it, and away again."""
    choice = random.Random(kind)
    while time.monotonic() < until:
        connection, answer = await _open(port, kind)
        if connection:
            answer = await _request(port, connection, "session/new", {"cwd": "/tmp", "mcpServers": []})
            session = answer.get("result", {}).get("sessionId")
            if session:
                await _prompt(port, connection, session)
                reading = asyncio.create_task(_read_stream(port, connection))
                await _rest(choice.uniform(10, 40), until)
                await _stop_reading(reading)
                await _request(port, connection, "session/delete", {"sessionId": session})
            await exchange(port, "DELETE", connection=connection)
        acts[f"{kind} agent provoked" if connection else f"{kind} agent did not start"] += 1
        await _rest(choice.uniform(1, 5), until)


class CarelessClient:
    """One after another of the things that no client should do."""

    def __init__(self, port: int, seed: int, acts: Counter[str]) -> None:
        self._port = port
        self._choice = random.Random(seed)
        self._acts = acts

    async def run(self, until: float) -> None:
        deeds: list[Callable[[], Awaitable[None]]] = [
            self._send_nonsense,
            self._send_half_a_head,
            self._lie_about_length,
            self._leave_after_asking,
            self._never_read,
            self._follow_from_nowhere,
        ]
        while time.monotonic() < until:
            deed = self._choice.choice(deeds)
            await deed()
            self._acts[f"client: {deed.__name__.strip('_').replace('_', ' ')}"] += 1
            await asyncio.sleep(self._choice.uniform(0.2, 1.5))

    async def _send_nonsense(self) -> None:
        bodies = (
            b"",
            b"null",
            b"[" * 5000,
            b'{"jsonrpc":"2.0","id":{},"method":5}',
            b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"nobody","prompt":"x"}}',
            self._choice.randbytes(2000),
            b'"' + b"x" * 500_000 + b'"',
        )
        status, _, _ = await exchange(self._port, "POST", self._choice.choice(bodies))
        if not 400 <= status < 500:
            raise Wrong(f"nonsense was answered with {status}")

    async def _send_half_a_head(self) -> None:
        async with _socket(self._port) as (_, writer):
            writer.write(b"POST /v1/rpc HTTP/1.1\r\nhost: 127.0.0.1\r\nauthoriz")
            await asyncio.sleep(self._choice.uniform(0, 5))

    async def _lie_about_length(self) -> None:
        async with _socket(self._port) as (_, writer):
            writer.write(_head("POST", None, "content-length: 1000000") + b'{"jsonrpc"')
            await asyncio.sleep(self._choice.uniform(0, 5))

    async def _leave_after_asking(self) -> None:
        connection, _ = await _open(self._port, "stub")
        answer = await _request(self._port, connection, "session/new", {"cwd": "/tmp", "mcpServers": []})
        session = answer["result"]["sessionId"]
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "flood 500 100"}]}
        body = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "session/prompt", "params": params}).encode()
        async with _socket(self._port) as (_, writer):
            writer.write(_head("POST", connection, f"content-length: {len(body)}") + body)
            await asyncio.sleep(self._choice.uniform(0, 0.05))
        await _request(self._port, connection, "session/delete", {"sessionId": session})
        await exchange(self._port, "DELETE", connection=connection)

    async def _never_read(self) -> None:
        connection, _ = await _open(self._port, "stub")
        answer = await _request(self._port, connection, "session/new", {"cwd": "/tmp", "mcpServers": []})
        session = answer["result"]["sessionId"]
        async with _socket(self._port) as (_, writer):
            writer.write(_head("GET", connection, "accept: text/event-stream"))
            await _prompt(self._port, connection, session, "flood 5000 200")
            await asyncio.sleep(self._choice.uniform(1, 10))
        await _request(self._port, connection, "session/delete", {"sessionId": session})
        await exchange(self._port, "DELETE", connection=connection)

    async def _follow_from_nowhere(self) -> None:
        last = self._choice.choice(("-1", "99999999999999999999", "x" * 5000, "1e9"))
        await exchange(self._port, "GET", None, f"last-event-id: {last}", connection="nobody")


async def exchange(port: int, verb: str, body: bytes | None = b"", *lines: str, connection: str | None = None) -> Any:
    """Status, headers and body. Raises Wrong when no answer comes."""
    async with _socket(port) as (reader, writer):
        length = [] if body is None else [f"content-length: {len(body)}"]
        writer.write(_head(verb, connection, "connection: close", *length, *lines) + (body or b""))
        try:
            async with asyncio.timeout(DEADLINE):
                answer = await reader.read()
        except TimeoutError:
            raise Wrong(f"no answer within {DEADLINE:g} s to {verb} {(body or b'')[:200]!r}") from None
    head, _, rest = answer.partition(b"\r\n\r\n")
    status, *pairs = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (pair.partition(": ") for pair in pairs)}
    return int(status.split()[1]), headers, rest


async def _open(port: int, agent: str) -> tuple[str, dict[str, Any]]:
    """A connection's id, or none with the error: some of these agents crash faster than they start."""
    params = {"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"agent": agent}}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    _, headers, body = await exchange(port, "POST", json.dumps(message).encode())
    return headers.get("x-acp-connection-id", ""), json.loads(body)


async def _request(port: int, connection: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
    _, _, body = await exchange(port, "POST", json.dumps(message).encode(), connection=connection)
    found: dict[str, Any] = json.loads(body)
    return found


async def _prompt(port: int, connection: str, session: str, text: str = "go") -> None:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    message = {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params}
    await exchange(port, "POST", json.dumps(message).encode(), "prefer: respond-async", connection=connection)


async def _read_stream(port: int, connection: str) -> None:
    async with _socket(port) as (reader, writer):
        writer.write(_head("GET", connection, "accept: text/event-stream"))
        while await reader.read(1 << 16):
            pass


async def _stop_reading(reading: asyncio.Task[None]) -> None:
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def _rest(seconds: float, until: float) -> None:
    await asyncio.sleep(max(0.0, min(seconds, until - time.monotonic())))


@contextlib.asynccontextmanager
async def _socket(port: int) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


def _head(verb: str, connection: str | None, *lines: str) -> bytes:
    every = [f"{verb} /v1/rpc HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {TOKEN}"]
    every += ["content-type: application/json", *lines]
    every += [f"x-acp-connection-id: {connection}"] if connection else []
    return ("\r\n".join(every) + "\r\n\r\n").encode()
