"""Fixtures that every folder may use: a real server, and a client connected to its built-in agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.rpc import RpcClient, connected
from support.server import Server, running_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "home", "--no-token") as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[RpcClient]:
    async with connected(server.url) as opened:
        yield opened
