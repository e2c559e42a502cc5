"""Where client and agent speak version 1 of ACP, nothing is translated: shown by counting calls, not by the clock."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from sandbox_agent.agents import CustomAgent
from sandbox_agent.core import frames, interpreter, speaking, versions
from sandbox_agent.core.ids import AgentId
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.hub import Hub
from support.hub import hub_here

CHUNKS = 300
TABLE = str(Path(versions.__file__).parent)
TRANSLATORS = (interpreter.__file__, speaking.__file__)
WORDS_AN_ANSWER = speaking.answer_to.__code__
"""Puts the client's id into every answer, in any version; it goes into the table only for another one."""


@contextmanager
def entered() -> Iterator[Counter[str]]:
    """Which functions of the translation this thread, the hub's, enters meanwhile, and how often."""
    found: Counter[str] = Counter()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_translation = code.co_filename.startswith(TABLE) or code.co_filename in TRANSLATORS
        if event == "call" and is_translation and code is not WORDS_AN_ANSWER:
            found[code.co_qualname] += 1

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)


async def ask(connection: Connection, method: str, params: dict[str, Any]) -> Any:
    raw = frames.request(b"1", method, params)
    async with asyncio.timeout(30):
        answer = await connection.request(frames.parse(raw), raw, timeout=None)
    return msgspec.json.decode(answer.line)


async def read_chunks(connection: Connection, count: int) -> None:
    """Until so many chunks of the agent have come, and the turn is over."""
    reader = connection.stream.follow(0)
    seen, is_over = 0, False
    async with asyncio.timeout(30):
        while seen < count or not is_over:
            batch = await reader.take(wait=30)
            lines = batch.lines if batch is not None else []
            seen += sum(b"agent_message_chunk" in line for line in lines)
            is_over = is_over or any(b"turn_ended" in line for line in lines)
    reader.close()


async def converse(hub: Hub, agent: str, version: int) -> Counter[str]:
    """What is entered by a turn with many updates, and by a request that passes through."""
    connection, _ = await hub.open_connection(AgentId(agent), {"protocolVersion": version})
    session = (await ask(connection, "session/new", {"cwd": "/tmp", "mcpServers": []}))["result"]["sessionId"]
    prompt = [{"type": "text", "text": f"chunks {CHUNKS} 20"}]
    with entered() as found:
        await ask(connection, "session/prompt", {"sessionId": session, "prompt": prompt})
        await read_chunks(connection, CHUNKS)
        await ask(connection, "_unknown/method", {"sessionId": session})
    return found


@asynccontextmanager
async def two_agents(home: Path) -> AsyncIterator[Hub]:
    """`mock` speaks version 1, `second` speaks 2."""
    command = (sys.executable, "-m", "sandbox_agent.mock_agent", "--protocol", "2")
    async with hub_here(home, agents={"second": CustomAgent(command=command)}) as hub:
        yield hub


async def test_between_a_client_and_an_agent_of_version_1_nothing_enters_the_translation(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as hub:
        assert await converse(hub, "mock", 1) == {}


async def test_between_those_of_version_2_only_turns_enter_it_not_updates(tmp_path: Path) -> None:
    """A turn is watched for its end, which version 2 tells by updates of its own."""
    async with two_agents(tmp_path) as hub:
        assert sum((await converse(hub, "second", 2)).values()) < CHUNKS / 3


@pytest.mark.parametrize(("agent", "version"), [("mock", 2), ("second", 1)])
async def test_between_two_versions_every_update_enters_it(tmp_path: Path, agent: str, version: int) -> None:
    """So the tests above could fail."""
    async with two_agents(tmp_path) as hub:
        assert sum((await converse(hub, agent, version)).values()) > CHUNKS
