"""Naming a session: parsed once, resolved in one place, whatever the request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.rpc import connected, prompt_params
from support.server import mock_agents, running_server

TWINS = mock_agents(a="--counter-sessions", b="--counter-sessions")


@pytest.mark.parametrize("turn", [{}, {"turnId": "t1"}], ids=["plain", "with a turnId"])
async def test_a_prompt_runs_at_the_agent_that_it_names_where_two_have_the_session(
    tmp_path: Path, turn: dict[str, str]
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=TWINS) as server,
        connected(server.url, "a") as one,
        connected(server.url, "b") as other,
        other.stream() as seen_at_b,
    ):
        session = await one.new_session()
        assert await other.new_session() == session
        await one.prompt(session, "for b", agent="b", **turn)
        await seen_at_b.wait_until(lambda e: e.text() == "for b")
        at_a = await one.call("_sandboxagent/session/events", {"sessionId": session})
        assert "for b" not in str(at_a)
        meta = {"sandboxagent.dev": {"agent": "b"}}
        at_b = await one.call("_sandboxagent/session/events", {"sessionId": session, "_meta": meta})
        assert "for b" in str(at_b)


async def test_a_cancel_and_any_other_call_reach_the_agent_that_they_name(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=TWINS) as server,
        connected(server.url, "a") as one,
        connected(server.url, "b") as other,
        other.stream() as seen_at_b,
    ):
        session = await one.new_session()
        assert await other.new_session() == session
        running = asyncio.create_task(other.prompt(session, "slow 1000"))
        await seen_at_b.wait_until(lambda e: "tick 1" in e.text())
        meta = {"sandboxagent.dev": {"agent": "b"}}
        await one.call("session/set_mode", {"sessionId": session, "modeId": "code", "_meta": meta})
        await one.notify("session/cancel", {"sessionId": session, "_meta": meta})
        assert (await running)["result"]["stopReason"] == "cancelled"
        described = (await one.http.get(f"/v1/sessions/{session}", params={"agent": "b"})).json()
        assert described["mode"] == "code"
        untouched = (await one.http.get(f"/v1/sessions/{session}", params={"agent": "a"})).json()
        assert untouched["mode"] != "code"


async def test_a_session_is_not_looked_for_at_another_agent_than_the_one_named(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=TWINS) as server,
        connected(server.url, "a") as one,
    ):
        session = await one.new_session()
        answer = await one.request("session/prompt", prompt_params(session, "hi", agent="b"))
        assert answer["error"]["message"] == f"no session with id or alias {session!r}"
        at_a = await one.call("_sandboxagent/session/events", {"sessionId": session})
        assert "session/prompt" not in str(at_a), "it ran at another agent"
        wrong = await one.request("session/prompt", prompt_params(session, "hi", agent=5))
        assert wrong["error"]["code"] == -32602
        assert "agent" in wrong["error"]["message"]
