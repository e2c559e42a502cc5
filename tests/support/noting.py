"""A server with one agent, `noting`, that writes down what it is asked."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.rpc import RpcClient, connected
from support.server import running_server

_PROGRAM = Path(__file__).with_name("noting_agent.py")
RESUMES: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"resume": {}}}}


def noting_config(notes: Path, initialized: dict[str, Any] = RESUMES) -> str:
    command = [sys.executable, str(_PROGRAM), str(notes), json.dumps(initialized)]
    return f"[agents.noting]\ncommand = {json.dumps(command)}\n"


@asynccontextmanager
async def noting_client(home: Path, initialized: dict[str, Any] = RESUMES) -> AsyncIterator[tuple[RpcClient, Path]]:
    """A client connected to it, and the file with its notes."""
    notes = home / "notes"
    config = noting_config(notes, initialized)
    async with running_server(home, "--no-token", config=config) as server, connected(server.url, "noting") as client:
        yield client, notes


def asked(notes: Path, method: str) -> list[dict[str, Any]]:
    """The params of every request of this method that it got."""
    messages = [json.loads(line) for line in notes.read_text().splitlines()]
    return [message["params"] for message in messages if message.get("method") == method]
