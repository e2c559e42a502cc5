"""Whether an MCP server starts: it is shaken hands with, as an agent would, and let go."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sandbox_agent.core.json_values import as_object
from sandbox_agent.errors import InvalidParams
from sandbox_agent.process import Child, ProgramInput, child_environment

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

_PATIENCE = 15.0
_SAID = 2000
_LINE = 1 << 20
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "sandbox-agent", "version": "1"},
    },
}


async def probe(server: dict[str, Any], environ: Mapping[str, str], cwd: Path) -> str:
    """What it says it is. Raises InvalidParams with the reason why it does not start."""
    try:
        async with asyncio.timeout(_PATIENCE):
            kind = server.get("type", "stdio")
            if kind == "stdio":
                return await _ask_program(server, environ, cwd)
            return await (_ask_stream(server) if kind == "sse" else _ask_http(server))
    except TimeoutError:
        raise InvalidParams(f"it did not answer within {_PATIENCE:.0f} seconds") from None


async def _ask_program(server: dict[str, Any], environ: Mapping[str, str], cwd: Path) -> str:
    env = child_environment(environ, extra={pair["name"]: pair["value"] for pair in server["env"]})
    try:
        command = [server["command"], *server["args"]]
        child = Child.launch(command, env=env, cwd=cwd, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise InvalidParams(f"it cannot be started: {error}") from None
    answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    heard, complaint = bytearray(), bytearray()

    def hear(chunk: bytes) -> None:
        heard.extend(chunk[: _LINE - len(heard)])
        for line in bytes(heard).split(b"\n")[:-1]:
            if b'"id"' in line and not answered.done():
                answered.set_result(line)

    stdin = ProgramInput(child.take_stdin())
    exiting = asyncio.ensure_future(child.exited())
    try:
        await child.pump(child.stdout, hear)
        await child.pump(child.stderr, lambda chunk: complaint.extend(chunk[: _SAID - len(complaint)]))
        await stdin.write(msgspec.json.encode(_HELLO) + b"\n")
        either: set[asyncio.Future[Any]] = {answered, exiting}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        await child.last_output(0.1 if exiting.done() else 0.0)
        if not answered.done():
            words = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise InvalidParams(f"it {exiting.result().words}: {words[0]}")
        return _introduced(answered.result())
    finally:
        exiting.cancel()
        stdin.close()
        await asyncio.shield(child.end())


async def _ask_http(server: dict[str, Any]) -> str:
    headers = {"Accept": "application/json, text/event-stream", **_headers(server)}
    try:
        async with httpx.AsyncClient(timeout=_PATIENCE) as http:
            answer = await http.post(server["url"], json=_HELLO, headers=headers)
    except httpx.HTTPError as error:
        raise InvalidParams(f"it cannot be reached: {error or type(error).__name__}") from None
    if answer.status_code >= 400:
        raise InvalidParams(f"it answers HTTP {answer.status_code}")
    body = answer.content
    if b"data:" in body[:4096] and not body.lstrip().startswith(b"{"):
        body = next(line[5:] for line in body.splitlines() if line.startswith(b"data:"))
    return _introduced(body)


async def _ask_stream(server: dict[str, Any]) -> str:
    try:
        headers = {"Accept": "text/event-stream", **_headers(server)}
        async with (
            httpx.AsyncClient(timeout=_PATIENCE) as http,
            http.stream("GET", server["url"], headers=headers) as answer,
        ):
            if answer.status_code >= 400:
                raise InvalidParams(f"it answers HTTP {answer.status_code}")
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    return "an event stream is open"
    except httpx.HTTPError as error:
        raise InvalidParams(f"it cannot be reached: {error or type(error).__name__}") from None
    raise InvalidParams("its event stream ended at once")


def _headers(server: dict[str, Any]) -> dict[str, str]:
    return {pair["name"]: pair["value"] for pair in server["headers"]}


def _introduced(raw: bytes) -> str:
    try:
        message = as_object(msgspec.json.decode(raw))
    except msgspec.MsgspecError:
        raise InvalidParams("what it answered is not JSON") from None
    if "error" in message:
        raise InvalidParams(f"it answered with an error: {as_object(message['error']).get('message')}")
    said = as_object(as_object(message.get("result")).get("serverInfo"))
    return f"starts: {said.get('name', 'unnamed')} {said.get('version', '')}".strip()
