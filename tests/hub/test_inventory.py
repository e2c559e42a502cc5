"""What is kept of sessions: nothing that was deleted comes back."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.agents import CustomAgent
from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, SessionName
from sandbox_agent.errors import UnknownSession
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.store import MemoryStore
from sandbox_agent.store.base import SessionRecord
from support import rude_agent
from support.hub import hub_here
from support.store_words import KEEP_ALL, KEY, session


@pytest.mark.parametrize("how", ["save", "end"])
async def test_work_on_a_session_that_is_deleted_meanwhile_does_not_bring_it_back(how: str) -> None:
    store = MemoryStore(retention=KEEP_ALL)
    await store.open()
    inventory = Inventory(store, Feed(kept_bytes=0))
    record = inventory.add(session())
    await inventory.delete(record)
    if how == "save":
        inventory.save(record)
    else:
        inventory.end(record, "terminated")
    assert await store.get_session(KEY) is None
    await store.close()


async def test_a_session_that_is_deleted_while_it_is_looked_up_is_not_found() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    class SlowStore(MemoryStore):
        async def find_sessions(self, name: str) -> list[SessionRecord]:
            found = await super().find_sessions(name)
            asked.set()
            await go_on.wait()
            return found

    store = SlowStore(retention=KEEP_ALL)
    await store.open()
    store.put_session(session())
    inventory = Inventory(store, Feed(kept_bytes=0))
    looking = asyncio.create_task(inventory.resolve(SessionName("one")))
    await asked.wait()
    record = await inventory.find(KEY)
    assert record is not None
    await inventory.delete(record)
    go_on.set()
    with pytest.raises(UnknownSession):
        await looking
    await store.close()


async def test_a_prompt_for_a_deleted_session_does_not_run_in_the_next_one_of_its_id(tmp_path: Path) -> None:
    """Its turnId is looked up while the session is deleted and the agent gives the name again."""
    asked, go_on = asyncio.Event(), asyncio.Event()
    agent = CustomAgent(command=(sys.executable, str(Path(rude_agent.__file__)), "same"), isolation="process")
    async with hub_here(tmp_path, agents={"rude": agent}) as hub:
        look_up = hub.store.get_turn

        async def look_up_slowly(key: SessionKey, turn_id: str) -> tuple[bool, bytes | None]:
            asked.set()
            await go_on.wait()
            return await look_up(key, turn_id)

        hub.store.put_session(session("rude-1", agent="rude", created=1.0))
        hub.store.get_turn = look_up_slowly  # type: ignore[method-assign]
        connection, _ = await hub.open_connection(AgentId("rude"), {})

        async def ask(method: str, **params: Any) -> dict[str, Any]:
            raw = frames.request(b"1", method, params)
            answer = await connection.request(frames.parse(raw), raw, timeout=None)
            told: dict[str, Any] = msgspec.json.decode(answer.line)
            return told

        ours = {"sandboxagent.dev": {"turnId": "t"}}
        prompt = asyncio.create_task(ask("session/prompt", sessionId="rude-1", prompt=[], _meta=ours))
        await asked.wait()
        await ask("session/delete", sessionId="rude-1")
        assert (await ask("session/new", cwd="/tmp", mcpServers=[]))["result"]["sessionId"] == "rude-1"
        go_on.set()
        answer = await prompt
        assert answer["error"]["data"]["type"].endswith("unknown_session"), answer


async def test_a_fork_is_not_of_a_later_session_that_got_the_id_of_its_parent() -> None:
    store = MemoryStore(retention=KEEP_ALL)
    await store.open()
    inventory = Inventory(store, Feed(kept_bytes=0))
    parent = inventory.add(session(created=1.0))
    forked = {"sessionId": parent.session_id, "created": parent.created, "sequence": 3}
    fork = SessionRecord(agent=parent.agent, session_id=SessionId("fork"), offered={"forkedFrom": forked})
    assert await inventory.origin(fork) == (parent, 3)
    await inventory.delete(parent)
    assert await inventory.origin(fork) is None
    inventory.add(session(created=2.0))
    assert await inventory.origin(fork) is None
    await store.close()
