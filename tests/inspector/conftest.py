from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.browser import ROOT, Browser, Inspector
from support.server import Server, running_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "home") as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests: every server has a port, and so storage and cookies, of its own."""
    opened = Browser(ROOT / "artifacts" / "inspector")
    yield opened
    opened.close()


@pytest.fixture
async def inspector(server: Server, browser: Browser) -> Inspector:
    opened = Inspector(browser, server.url)
    await opened.open()
    return opened
