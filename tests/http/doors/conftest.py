"""A server for a whole module, and fresh ones for tests that break things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.server import Server, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Shared by a module's tests, on a loop of its own that only starts and stops it."""
    with asyncio.Runner() as runner:
        running = running_server(tmp_path_factory.mktemp("server"), "--default-agent", "mock")
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[Server]:
    """For one test alone."""
    async with running_server(tmp_path / "server", "--default-agent", "mock") as running:
        yield running
