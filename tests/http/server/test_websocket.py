"""A WebSocket whose peer has gone: whoever serves it is told, also while it waits for something else."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn
from websockets.asyncio.client import connect

from sandbox_agent.http.api.elsewhere import Elsewhere
from sandbox_agent.http.asgi.messages import Receive, Scope, Send
from sandbox_agent.http.doors.terminal import TerminalDoor
from sandbox_agent.http.server.direct import DirectProtocol
from sandbox_agent.http.server.websocket import bounded_websocket
from sandbox_agent.http.server.wire import Sockets, bounded
from sandbox_agent.hub.processes.views import StartProcess
from support.hub import hub_here
from support.waiting import until


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """The address of a server in this process that looks after its peers every moment."""
    sockets = Sockets(100, patience=30.0)
    http, ws = bounded(sockets, DirectProtocol), bounded_websocket(sockets)
    config = uvicorn.Config(
        app, http=http, ws=ws, port=0, lifespan="off", log_config=None, ws_ping_interval=0.1, ws_ping_timeout=0.1
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"ws://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        async with asyncio.timeout(30):
            await running


@pytest.mark.promise("P-limit-7")
async def test_a_terminal_is_left_by_one_whose_input_its_program_never_reads(tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub:
        door, served = TerminalDoor(hub.processes, Elsewhere(hub, None, None).serve), itertools.count()
        deaf = "stty raw -echo; printf set; exec sleep 1000"
        info = await hub.processes.start(StartProcess(command="sh", args=["-c", deaf], tty=True))
        over: list[int] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            scope["path_params"] = {"id": info.id}
            try:
                await door(scope, receive, send)
            finally:
                over.append(next(served))

        typed = msgspec.json.encode({"type": "input", "data": "x" * 50_000}).decode()
        async with serving(app) as url:
            for number in range(3):
                async with connect(url, ping_interval=None) as socket:
                    while await socket.recv() != b"set":
                        pass
                    for _ in range(4):
                        await socket.send(typed)
                    socket.transport.abort()
                await until(lambda: len(over) > number)  # noqa: B023 - it is waited for here
