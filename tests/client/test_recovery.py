"""A turn whose stream lost something is completed from the session's history."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from sandbox_agent import SandboxAgent
from sandbox_agent.client import StreamGap, text_of
from sandbox_agent.client.inbox import Recovery, TurnBox
from sandbox_agent.client.updates import read_update
from sandbox_agent.errors import AgentUnsupported
from support.server import running_server


async def test_a_connection_that_the_server_closes_in_the_middle_of_a_turn_costs_no_update(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        said = ""
        turn = session.prompt("slow 60")
        async with asyncio.timeout(50), httpx.AsyncClient(trust_env=False) as http:
            async for update in turn:
                said += text_of(update)
                if text_of(update) in {"tick 5 ", "tick 25 "}:
                    headers = {"X-ACP-Connection-Id": sandbox._connections["mock"].result().rpc.connection_id or ""}
                    await http.delete(f"{server.url}/v1/rpc", headers=headers)
        assert said == "".join(f"tick {number} " for number in range(1, 61))
        assert turn.stop_reason == "end_turn"
        assert await session.prompt("recall").text() == "1. slow 60"


async def test_a_session_can_be_made_when_the_server_has_just_forgotten_the_connection(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        await sandbox.create_session(agent="mock", cwd="/tmp")
        headers = {"X-ACP-Connection-Id": sandbox._connections["mock"].result().rpc.connection_id or ""}
        async with asyncio.timeout(30), httpx.AsyncClient(trust_env=False) as http:
            await http.delete(f"{server.url}/v1/rpc", headers=headers)
            made = await sandbox.create_session(agent="mock", cwd="/tmp")
            assert await made.prompt("hello").text() == "hello"


class _History:
    """Stands for the server: the envelopes of a session, and how many of them it gives at once."""

    def __init__(self, entries: list[tuple[int, dict[str, Any]]], *, page: int) -> None:
        self.entries = entries
        self.page = page

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        later = [(sequence, envelope) for sequence, envelope in self.entries if sequence > params["after"]]
        events = [
            {"sequence": sequence, "time": "", "source": "agent", "envelope": envelope}
            for sequence, envelope in later[: self.page]
        ]
        return {"events": events, "hasMore": len(later) > self.page}


class _NoHistory:
    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise AgentUnsupported("no such extension")


def _prompt(turn_id: str) -> dict[str, Any]:
    return {"method": "session/prompt", "params": {"_meta": {"sandboxagent.dev": {"turnId": turn_id}}}}


def _chunk(number: int, kind: str = "agent_message_chunk") -> dict[str, Any]:
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": f"{number} "}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}


async def _recovered(history: Any, *, seen: int) -> list[Any]:
    turn = TurnBox("this")
    for number in range(1, seen + 1):
        turn.put(_chunk(number))
    turn.recovery = Recovery("s", turn, None)
    turn.finish()
    async with asyncio.timeout(10):
        await turn.recovery.run(history)
        updates = []
        while (envelope := await turn.mailbox.take()) is not None:
            assert isinstance(envelope, dict)
            updates.append(read_update(envelope))
    return updates


async def test_only_what_follows_this_turns_prompt_and_was_not_seen_is_added() -> None:
    entries = [_prompt("earlier"), _chunk(99), _prompt("this"), *(_chunk(n) for n in range(1, 8))]
    updates = await _recovered(_History(list(enumerate(entries, 1)), page=3), seen=4)
    assert [text_of(update) for update in updates] == [f"{number} " for number in range(1, 8)]


async def test_what_follows_the_next_prompt_is_another_turns() -> None:
    entries = [_prompt("this"), _chunk(1), _chunk(2), _prompt("next"), _chunk(99)]
    updates = await _recovered(_History(list(enumerate(entries, 1)), page=10), seen=1)
    assert [text_of(update) for update in updates] == ["1 ", "2 "]


async def test_the_users_own_words_in_history_are_not_counted() -> None:
    entries = [_prompt("this"), _chunk(0, "user_message_chunk"), _chunk(1), _chunk(2)]
    updates = await _recovered(_History(list(enumerate(entries, 1)), page=10), seen=1)
    assert [text_of(update) for update in updates] == ["1 ", "2 "]


async def test_what_history_no_longer_keeps_is_said_and_counted() -> None:
    entries = [(1, _prompt("this")), (2, _chunk(1)), (6, _chunk(5))]
    updates = await _recovered(_History(entries, page=10), seen=1)
    assert updates[1] == StreamGap(3)
    assert text_of(updates[2]) == "5 "


async def test_without_a_history_the_gap_is_said() -> None:
    updates = await _recovered(_NoHistory(), seen=1)
    assert isinstance(updates[-1], StreamGap)
