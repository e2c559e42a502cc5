"""Every request that was taken is answered, whatever happens to its connection, its session or its agent meanwhile."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx
import pytest

from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import AgentExited
from support import rude_agent
from support.hub import hub_here
from support.rpc import CONNECTION, JSON, connected, prompt_params
from support.server import Server, mock_agents, running_server

ROUNDS = 60


@pytest.mark.promise("P-limit-1")
async def test_a_prompt_that_meets_the_delete_of_its_connection_is_answered(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=20, trust_env=False) as http:
        for number in range(ROUNDS):
            async with connected(server.url) as client:
                session = await client.new_session()
                message = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt"}
                headers = {CONNECTION: client.id, **JSON}
                posts = [
                    asyncio.create_task(
                        http.post("/v1/rpc", json={**message, "params": prompt_params(session, "hi")}, headers=headers)
                    )
                    for _ in range(3)
                ]
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                await http.delete("/v1/rpc", headers={CONNECTION: client.id})
                async with asyncio.timeout(15):
                    answers = await asyncio.gather(*posts)
                assert {answer.status_code for answer in answers} <= {200, 404}


@pytest.mark.promise("P-limit-1")
async def test_prompts_that_wait_while_their_session_is_deleted_or_closed_are_answered(server: Server) -> None:
    for method in ("session/delete", "session/close"):
        async with connected(server.url) as client, client.stream() as events:
            session = await client.new_session()
            running = asyncio.create_task(client.prompt(session, "hang"))
            await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_started")
            waiting = [asyncio.create_task(client.prompt(session, f"wait {n}")) for n in range(3)]
            await events.wait_until(lambda e: sum("turn_queued" in str(m.get("method")) for m in e.messages) == 3)
            async with asyncio.timeout(20):
                await client.request(method, {"sessionId": session})
                for task in (running, *waiting):
                    answer = await task
                    assert "error" in answer or answer["result"]["stopReason"] == "cancelled"


async def test_prompts_sent_while_a_session_fails_to_wake_are_all_answered(tmp_path: Path) -> None:
    config = mock_agents(m="--fail-load --no-resume")
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "m") as client,
    ):
        session = await client.new_session()
        await client.prompt(session, "crash")
        async with asyncio.timeout(30):
            for _ in range(5):
                answers = await asyncio.gather(*(client.prompt(session, f"{n}") for n in range(4)))
                assert all("error" in answer for answer in answers)


async def test_a_session_that_is_ended_while_its_agent_starts_for_it_says_so(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m="--slow-initialize 1000")) as server,
        connected(server.url, "m") as client,
    ):
        session = await client.new_session()
        await client.prompt(session, "crash")
        params = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
        async with asyncio.timeout(30):
            resuming = asyncio.create_task(client.request("session/resume", params))
            await asyncio.sleep(0.2)
            await client.request("_sandboxagent/session/terminate", {"sessionId": session})
            answer = await resuming
        assert answer["error"]["data"]["type"].endswith("session_ended"), answer


async def test_after_a_close_the_next_prompt_does_not_wait_behind_a_turn_that_never_ends(server: Server) -> None:
    async with connected(server.url) as client, client.stream() as events:
        session = await client.new_session()
        stuck = asyncio.create_task(client.prompt(session, "hang"))
        await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_started")
        async with asyncio.timeout(20):
            await client.request("session/close", {"sessionId": session})
            await stuck
            assert (await client.prompt(session, "hello again"))["result"]["stopReason"] == "end_turn"


@pytest.mark.promise("P-limit-1")
async def test_what_is_asked_of_a_process_that_is_being_ended_is_refused_at_once(tmp_path: Path) -> None:
    """As when a session is configured while another client deletes it, and its process with it."""
    async with hub_here(tmp_path) as hub:
        agent = await hub.agents.started(AgentId("mock"))
        ending = asyncio.create_task(agent.rest())
        async with asyncio.timeout(10):
            while agent.is_ready:
                await asyncio.sleep(0)
            with pytest.raises(AgentExited, match="session/set_mode was not sent"):
                await agent.request("session/set_mode", {"sessionId": "s", "modeId": "x"}, timeout=None)
            await ending
            await agent.ready()


@pytest.mark.promise("P-limit-1")
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "the agent refuses"])
async def test_a_prompt_that_comes_while_a_session_closes_begins_only_if_the_agent_keeps_it(
    tmp_path: Path, *, is_closed: bool
) -> None:
    command = [sys.executable, str(Path(rude_agent.__file__)), "keeps"]
    config = f"[agents.rude]\nisolation = 'process'\ncommand = {command!r}\n"
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "rude") as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        await client.prompt(session, "first")
        closing = asyncio.create_task(client.request("session/close", {"sessionId": session}))
        await events.wait_for(lambda m: "asked to close" in str(m))
        prompt = asyncio.create_task(client.prompt(session, "second"))
        await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_queued")
        async with asyncio.timeout(20):
            await client.request("_rude/close" if is_closed else "_rude/refuse", {})
            assert ("result" in await closing) == is_closed
            answer = await prompt
            last = await client.prompt(session, "third")
        assert last["result"]["stopReason"] == "end_turn"
        heard = [word for word in ("first", "second", "third") if f"hears {word}" in str(events.messages)]
        assert heard == (["first", "third"] if is_closed else ["first", "second", "third"])
        if is_closed:
            assert answer["error"]["data"]["type"].endswith("session_ended"), answer
            await events.wait_for(lambda m: m.get("params", {}).get("hasRun") is False)
