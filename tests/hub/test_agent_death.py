"""Rule 6: an agent that dies answers everybody, and its sessions come back where it can load or resume."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.rpc import RpcClient, connected, is_permission
from support.server import Server, mock_agents, running_server
from support.waiting import until


def agent_pid(server: Server) -> int:
    """The pid that the server's log names last."""
    lines = [line for line in server.log_text().splitlines() if "agent started" in line]
    return int(lines[-1].rsplit("pid=", 1)[1])


@pytest.mark.promise("P-agent-1")
async def test_kill_9_in_a_prompt_answers_it_at_once_with_exit_code_and_stderr(
    server: Server, client: RpcClient
) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, "stderr 3; slow 1000"))
        await events.wait_until(lambda e: "tick 2" in e.text())
        os.kill(agent_pid(server), signal.SIGKILL)
        async with asyncio.timeout(5):  # a second by itself; the machine may be busy
            answer = await turn
    error = answer["error"]
    assert error["code"] == -32010
    assert error["data"]["exitCode"] == 128 + signal.SIGKILL
    assert error["data"]["stderr"]["totalLines"] == 3
    assert error["data"]["stderr"]["head"] == [line for line in error["data"]["stderr"]["head"] if line]
    assert "SIGKILL" in error["message"]
    fresh = await client.new_session()
    assert (await client.prompt(fresh, "hello"))["result"]["stopReason"] == "end_turn"


@pytest.mark.promise("P-agent-1")
async def test_every_waiter_of_every_client_is_answered(server: Server) -> None:
    async with connected(server.url) as one, connected(server.url) as other:
        sessions = [await one.new_session(), await other.new_session(), await other.new_session()]
        turns = [
            asyncio.create_task(client.prompt(session, "hang"))
            for client, session in ((one, sessions[0]), (other, sessions[1]), (other, sessions[2]))
        ]
        queued = asyncio.create_task(one.prompt(sessions[0], "behind it"))
        await one.call("session/list")
        await asyncio.sleep(0.2)  # all four are on their way; whichever the death overtakes is answered all the same
        os.kill(agent_pid(server), signal.SIGKILL)
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*turns, queued)
        assert {answer["error"]["code"] for answer in answers} == {-32010}


@pytest.mark.promise("P-agent-2")
async def test_the_same_session_goes_on_after_a_crash_and_keeps_its_context(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        await client.prompt(session, "remember the milk")
        answer = await client.prompt(session, "crash 7")
        assert answer["error"]["data"]["exitCode"] == 7
        assert "about to crash" in answer["error"]["data"]["stderr"]["head"][0]
        notice = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/error")
        assert notice["params"]["sessionId"] == session
        seen = len(events.messages)
        assert (await client.prompt(session, "recall"))["result"]["stopReason"] == "end_turn"
        await events.wait_for(lambda m: "remember the milk" in str(m), after=seen)
        replayed = [m for m in events.messages[seen:] if "user_message_chunk" in str(m)]
        assert not replayed


@pytest.mark.parametrize("flags", ["--no-resume", "--no-load", "--no-resume --late-replay"])
async def test_either_load_or_resume_is_enough_to_come_back_and_the_replay_is_muted(tmp_path: Path, flags: str) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m=flags)) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        await client.prompt(session, "first words")
        await client.prompt(session, "crash")
        assert (await client.prompt(session, "second words"))["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: e.text().endswith("second words"))
        assert events.text() == "first wordssecond words"
        assert not events.updates("user_message_chunk")


async def test_sessions_of_an_agent_that_cannot_come_back_end_and_say_so(tmp_path: Path) -> None:
    config = mock_agents(m="--no-load --no-resume")
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        await client.prompt(session, "crash 5")
        ended = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/ended")
        params = ended["params"]
        assert params["sessionId"] == session
        assert (params["reason"], params["terminatedBy"], params["exitCode"]) == ("error", "agent", 5)
        assert (params["terminated_by"], params["exit_code"]) == ("agent", 5), "as the earlier API spelled it"
        ours = params["_meta"]["sandboxagent.dev"]
        assert (ours["agent"], ours["nativeSessionId"]) == ("m", session)
        assert (ours["sessionEnd"]["terminatedBy"], ours["sessionEnd"]["exitCode"]) == ("agent", 5)
        assert set(params["stderr"]) == {"head", "tail", "truncated", "totalLines"}
        answer = await client.prompt(session, "hello?")
        assert answer["error"]["code"] == -32009
        assert "ended" in answer["error"]["message"]
        assert (await client.prompt(await client.new_session(), "hi"))["result"]["stopReason"] == "end_turn"


async def test_a_session_that_the_agent_fails_to_load_can_be_read_and_says_why_it_cannot_go_on(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m="--fail-load")) as server,
        connected(server.url, "m") as client,
    ):
        session = await client.new_session()
        await client.prompt(session, "remember this")
        await client.prompt(session, "crash")
        answer = await client.prompt(session, "hello?")
        assert answer["error"]["code"] == -32009
        assert "could not load" in answer["error"]["message"]
        assert "sessions cannot be loaded (--fail-load)" in answer["error"]["message"]
        assert answer["error"]["data"]["agentError"]["code"] == -32603
        async with client.stream() as events:
            params = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
            loaded = await client.call("session/load", params)
            ours = loaded["_meta"]["sandboxagent.dev"]
            assert (ours["readOnly"], "--fail-load" in ours["reason"]) == (True, True)
            await events.wait_until(lambda e: "remember this" in e.text())
        assert (await client.prompt(await client.new_session(), "hi"))["result"]["stopReason"] == "end_turn"


async def test_an_open_permission_is_withdrawn_when_the_agent_dies(server: Server, client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, "tool"))
        request = await events.wait_for(is_permission)
        os.kill(agent_pid(server), signal.SIGKILL)
        await turn
        cancel = await events.wait_for(lambda m: m.get("method") == "$/cancel_request")
        assert cancel["params"]["requestId"] == request["id"]


async def test_a_crash_loop_ends_in_a_clear_error(tmp_path: Path) -> None:
    config = '[agents.bad]\ncommand = ["/bin/sh", "-c", "echo no luck >&2; exit 4"]\n'
    async with running_server(tmp_path, "--no-token", config=config) as server:
        details = []
        for _ in range(8):
            details.append(await _initialize(server, "bad"))
            if "tried again" in details[-1]["detail"]:
                break
        assert details[0]["type"].endswith("agent_start_failed")
        assert details[0]["exitCode"] == 4
        assert details[0]["stderr"]["head"] == ["no luck"]
        assert "in a row" in details[-1]["detail"]
        assert details[-1]["retryAfterMs"] > 0
        async with connected(server.url) as client:  # the others are served all the same
            assert await client.new_session()


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (["/nonexistent/agent"], "/nonexistent/agent"),
        (["/bin/sh", "-c", "exit 3"], "code 3"),
        (["/bin/true"], "code 0"),
    ],
)
async def test_an_agent_that_cannot_start_is_a_problem_that_says_why(
    tmp_path: Path, command: list[str], word: str
) -> None:
    config = f"[agents.bad]\ncommand = {command!r}\n"
    async with running_server(tmp_path, "--no-token", config=config) as server:
        problem = await _initialize(server, "bad")
        assert problem["status"] == 502
        assert word in problem["detail"]


async def test_an_agent_that_refuses_initialize_is_a_problem_and_leaves_no_process(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token", config=mock_agents(m="--fail-initialize")) as server:
        problem = await _initialize(server, "m")
        assert "refused the handshake" in problem["detail"]
        await until(lambda: not children_of(server.pid))


async def _initialize(server: Server, agent: str) -> dict[str, Any]:
    import httpx

    params = {"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"agent": agent}}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
        response = await http.post("/v1/rpc", json=message)
    assert response.status_code >= 400
    problem: dict[str, Any] = response.json()
    return problem


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found
