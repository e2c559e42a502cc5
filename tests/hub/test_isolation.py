"""A process for each session: what one session says, does or suffers, no other hears of."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.rpc import Events, RpcClient, connected
from support.server import Server, mock_agents, running_server
from support.waiting import until


def apart(**flags: str) -> str:
    """The built-in agent under other names, with a process for each session."""
    return mock_agents(**flags).replace('isolation = "process"', 'isolation = "session"')


async def processes(client: RpcClient, agent: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = (await client.http.get(f"/v1/agents/{agent}")).json()["serverStatus"]["processes"]
    return shown


async def pid_of(client: RpcClient, agent: str, session: str) -> int | None:
    return next((one["pid"] for one in await processes(client, agent) if one["session"] == session), None)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def history(client: RpcClient, session: str) -> str:
    page = await client.call("_sandboxagent/session/events", {"sessionId": session, "limit": 1000})
    return str(page)


async def secret_told(client: RpcClient, other: RpcClient) -> tuple[str, str, str]:
    """What the other client hears, and what its history keeps, when this one says a secret; and its own text."""
    async with client.stream() as mine, other.stream() as theirs:
        my_session, their_session = await client.new_session(), await other.new_session()
        await asyncio.gather(client.prompt(my_session, "the secret is 4711"), other.prompt(their_session, "hello"))
        await mine.wait_until(lambda e: "4711" in e.text())
        await theirs.wait_until(lambda e: "hello" in e.text())
        assert (await other.prompt(their_session, "over"))["result"]["stopReason"] == "end_turn"
        await theirs.wait_until(lambda e: "over" in e.text())
        return str(theirs.messages), await history(other, their_session), theirs.text()


async def test_an_agent_that_mixes_sessions_up_leaks_where_they_share_its_process(tmp_path: Path) -> None:
    """What `isolation = "process"` means for an agent that was not checked."""
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(rude="--leak")) as server,
        connected(server.url, "rude") as client,
        connected(server.url, "rude") as other,
    ):
        heard, kept, _ = await secret_told(client, other)
        assert "4711" in heard
        assert "4711" in kept


async def test_an_agent_that_mixes_sessions_up_leaks_nothing_where_each_has_its_process(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=apart(rude="--leak")) as server,
        connected(server.url, "rude") as client,
        connected(server.url, "rude") as other,
    ):
        heard, kept, text = await secret_told(client, other)
        assert "4711" not in heard
        assert "4711" not in kept
        assert text == "helloover"
        assert len(await processes(client, "rude")) == 2


async def test_an_agent_of_ones_own_has_a_process_for_each_session_unless_the_config_says_otherwise(
    tmp_path: Path,
) -> None:
    config = mock_agents(m="").replace('isolation = "process"\n', "")
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "m") as client,
    ):
        first, second = await client.new_session(), await client.new_session()
        listed = (await client.http.get("/v1/agents/m")).json()
        assert listed["isolation"] == "session"
        assert {one["session"] for one in listed["serverStatus"]["processes"]} == {first, second}
        assert listed["serverStatus"]["sessions"] == 2
        mock = (await client.http.get("/v1/agents/mock")).json()
        assert mock["isolation"] == "process"


@pytest.mark.promise("P-agent-6")
async def test_one_session_that_dies_takes_no_other_with_it_and_comes_back(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=apart(m="")) as server,
        connected(server.url, "m") as client,
        connected(server.url, "m") as other,
        client.stream() as mine,
        other.stream() as theirs,
    ):
        dying, living = await client.new_session(), await other.new_session()
        await client.prompt(dying, "remember the milk")
        slow = asyncio.create_task(other.prompt(living, "slow 3"))
        await theirs.wait_until(lambda e: "tick 1" in e.text())
        pid = await pid_of(client, "m", dying)
        assert pid is not None
        answer = await client.prompt(dying, "crash 7")
        assert answer["error"]["data"]["exitCode"] == 7
        assert (await slow)["result"]["stopReason"] == "end_turn"
        assert not any(m.get("method") == "_sandboxagent/error" for m in theirs.messages)
        assert (await client.prompt(dying, "recall"))["result"]["stopReason"] == "end_turn"
        await mine.wait_until(lambda e: "remember the milk" in e.text())
        assert await pid_of(client, "m", dying) not in (None, pid)
        status = (await client.http.get("/v1/agents/m")).json()["serverStatus"]
        assert status["restartCount"] == 1
        assert status["status"] == "running"


@pytest.mark.parametrize("how", ["session/close", "session/delete", "_sandboxagent/session/terminate"])
async def test_the_process_of_a_session_ends_with_it(tmp_path: Path, how: str) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=apart(m="")) as server,
        connected(server.url, "m") as client,
    ):
        session, staying = await client.new_session(), await client.new_session()
        pid, other = await pid_of(client, "m", session), await pid_of(client, "m", staying)
        assert pid is not None
        assert other is not None
        await client.call(how, {"sessionId": session})
        await until(lambda: not is_alive(pid))
        assert is_alive(other)
        if how == "session/close":
            assert (await client.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


async def test_past_the_limit_an_idle_process_rests_and_its_session_wakes_when_it_is_prompted(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="max_session_processes = 2\n" + apart(m="")) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        sessions = [await client.new_session() for _ in range(4)]
        for number, session in enumerate(sessions):
            assert (await client.prompt(session, f"word{number}"))["result"]["stopReason"] == "end_turn"
            assert len(await processes(client, "m")) <= 2
        for session in sessions:
            assert (await client.prompt(session, "recall"))["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: all(f"1. word{number}" in e.text() for number in range(4)))
        assert not any(m.get("method") == "_sandboxagent/error" for m in events.messages)


async def test_past_the_limit_with_all_processes_at_work_one_more_is_refused_and_says_why(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="max_session_processes = 2\n" + apart(m="")) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        sessions = [await client.new_session() for _ in range(2)]
        turns = [asyncio.create_task(client.prompt(session, "hang")) for session in sessions]
        await until(lambda: _started(events) == 2)
        refused = await asyncio.gather(*(client.request("session/new", {"cwd": "/", "mcpServers": []}) for _ in "ab"))
        for answer in refused:
            assert answer["error"]["code"] == -32013
            assert "max_session_processes" in answer["error"]["message"]
        for session in sessions:
            await client.notify("session/cancel", {"sessionId": session})
        await asyncio.gather(*turns)
        assert await client.new_session()


def _started(events: Events) -> int:
    return sum(m.get("method") == "_sandboxagent/session/turn_started" for m in events.messages)


async def test_an_idle_process_that_nobody_is_attached_to_is_ended_and_its_session_goes_on_later(
    tmp_path: Path,
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="session_process_idle_ms = 300\n" + apart(m="")) as server,
        connected(server.url, "m") as watcher,
    ):
        async with connected(server.url, "m") as client:
            session = await client.new_session()
            await client.prompt(session, "remember the milk")
            pid = await pid_of(client, "m", session)
            assert pid is not None
            await asyncio.sleep(0.9)
            assert is_alive(pid), "somebody is attached"
            await client.close()
        await until(lambda: not is_alive(pid))
        async with watcher.stream() as events:
            await watcher.prompt(session, "recall")
            await events.wait_until(lambda e: "remember the milk" in e.text())


async def test_a_fork_goes_on_in_a_process_of_its_own(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=apart(rude="--leak")) as server,
        connected(server.url, "rude") as client,
        connected(server.url, "rude") as other,
    ):
        parent = await client.new_session()
        await client.prompt(parent, "remember the milk")
        forked = (await other.call("session/fork", {"sessionId": parent, "cwd": "/", "mcpServers": []}))["sessionId"]
        async with other.stream() as events:
            await client.prompt(parent, "the secret is 4711")
            await other.prompt(forked, "recall")
            await events.wait_until(lambda e: "remember the milk" in e.text())
            assert "4711" not in str(events.messages)
        pids = {await pid_of(client, "rude", parent), await pid_of(client, "rude", forked)}
        assert len(pids - {None}) == 2


async def test_asking_for_models_leaves_no_process_behind_and_is_remembered(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=apart(m="")) as server,
        connected(server.url, "m") as client,
    ):
        session = await client.new_session()
        for _ in range(2):
            shown = (await client.http.get("/v1/agents/m?config=true", timeout=30)).json()
            assert [model["id"] for model in shown["models"]] == ["mock-small", "mock-large"]
        assert [one["session"] for one in await processes(client, "m")] == [session]
        assert server.log_text().count("agent started agent=m") == 2


async def test_the_server_leaves_none_of_many_processes_behind(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token", config=apart(m="--ignore-eof")) as server:
        async with connected(server.url, "m") as client:
            for _ in range(3):
                await client.new_session()
            pids = [one["pid"] for one in await processes(client, "m")]
            assert len(pids) == 3
        assert await server.stop() == 0
        assert not any(is_alive(pid) for pid in pids)


async def test_metrics_count_all_processes_of_an_agent_and_never_fall_back(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=apart(m="")) as server,
        connected(server.url, "m") as client,
    ):
        sessions = [await client.new_session(), await client.new_session()]
        for session in sessions:
            await client.prompt(session, "hello")
        before = await metrics(client)
        assert before['sandbox_agent_agent_processes{agent="m"}'] == 2
        assert before['sandbox_agent_agent_sessions{agent="m"}'] == 2
        assert before['sandbox_agent_agent_rss_bytes{agent="m"}'] > 0
        await client.call("session/delete", {"sessionId": sessions[0]})
        after = await metrics(client)
        assert after['sandbox_agent_agent_processes{agent="m"}'] == 1
        came = 'sandbox_agent_events_total{agent="m",direction="in"}'
        assert after[came] >= before[came] > 0


async def metrics(client: RpcClient) -> dict[str, float]:
    text = (await client.http.get("/v1/metrics")).text
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


async def test_a_killed_process_is_told_to_nobody_but_its_own_clients(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=apart(m="")) as server,
        connected(server.url, "m") as client,
        connected(server.url, "m") as other,
    ):
        session, apart_from_it = await client.new_session(), await other.new_session()
        pid = await pid_of(client, "m", session)
        assert pid is not None
        async with client.stream() as mine, other.stream() as theirs:
            os.kill(pid, signal.SIGKILL)
            await mine.wait_for(lambda m: m.get("method") == "_sandboxagent/error")
            assert (await other.prompt(apart_from_it, "hello"))["result"]["stopReason"] == "end_turn"
            await theirs.wait_until(lambda e: "hello" in e.text())
            assert "SIGKILL" not in str(theirs.messages)


async def test_two_first_clients_at_once_get_a_session_each(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token", config=apart(m="")) as server:

        async def talk(word: str, server: Server = server) -> str:
            async with connected(server.url, "m") as client, client.stream() as events:
                session = await client.new_session()
                await client.prompt(session, word)
                await events.wait_until(lambda e: word in e.text())
                return events.text()

        assert list(await asyncio.gather(talk("one"), talk("two"), talk("three"))) == ["one", "two", "three"]


async def test_processes_that_name_their_sessions_alike_keep_them_apart(tmp_path: Path) -> None:
    """Each process counts from 1: both sessions go on; the older one is lost with its process, and says why."""
    async with (
        running_server(tmp_path, "--no-token", config=apart(m="--counter-sessions")) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        first, second = await client.new_session(), await client.new_session()
        assert first != second
        for session, word in ((first, "apple"), (second, "pear"), (first, "cherry")):
            assert (await client.prompt(session, word))["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: e.text() == "applepearcherry")
        await client.prompt(first, "crash 1")
        assert "newer session" in (await client.prompt(first, "recall"))["error"]["message"]
        assert (await client.prompt(second, "still here"))["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(("isolation", "others"), [("process", "fails"), ("session", "goes on")])
async def test_what_the_crash_of_one_session_means_for_another_is_as_the_docs_say(
    tmp_path: Path, isolation: str, others: str
) -> None:
    config = mock_agents(m="").replace('isolation = "process"', f'isolation = "{isolation}"')
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        dying, bystander = await client.new_session(), await client.new_session()
        turn = asyncio.create_task(client.prompt(bystander, "slow 1000"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        await client.prompt(dying, "crash 1")
        await client.notify("session/cancel", {"sessionId": bystander})
        assert ("goes on" if "result" in await turn else "fails") == others
    page = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text("utf-8")
    assert f'`isolation = "{isolation}"`' in page
