"""Fixtures that every folder may use: a real server, and a client connected to its built-in agent."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.postgres import PostgresServer, running_postgres
from support.rpc import RpcClient, connected
from support.server import Server, running_server

# Property tests say what holds, not how fast: a loaded machine is no failure. In CI the values are the same each time,
# so that what fails there is what the change broke; everywhere else they are new ones.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("patient")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "home", "--no-token") as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[RpcClient]:
    async with connected(server.url) as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """For one test, which may stop it."""
    with running_postgres() as server:
        yield server
