from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.stdio_agent import StdioAgent, run_agent


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[StdioAgent]:
    async with run_agent(state=tmp_path / "state") as agent:
        yield agent
