"""An OpenCode client on the server that a module's tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.opencode import OpenCode, opencode
from support.server import Server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[OpenCode]:
    async with opencode(server.url) as opened:
        yield opened
