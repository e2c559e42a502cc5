"""A session's id is ours: an agent that gives a name twice mixes up nobody's conversations."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from support import racing_agent, rude_agent, twin_agent
from support.rpc import RpcClient, connected
from support.server import Server, running_server
from support.store_words import sqlite_store
from support.waiting import until


def config(word: str) -> str:
    command = [sys.executable, str(Path(rude_agent.__file__)), word]
    return f"[agents.rude]\nisolation = 'process'\ncommand = {command!r}\n"


async def kill_agent(client: RpcClient) -> None:
    """End the process, and return when the server knows."""
    agents = (await client.http.get("/v1/agents")).json()["agents"]
    os.kill(next(agent for agent in agents if agent["id"] == "rude")["serverStatus"]["pid"], signal.SIGKILL)
    while (await client.http.get("/v1/agents/rude")).json()["serverStatus"]["status"] == "running":
        pass


async def history(client: RpcClient, session: str) -> list[dict[str, Any]]:
    page = await client.call("_sandboxagent/session/events", {"sessionId": session})
    return [event["envelope"] for event in page["events"]]


def texts(messages: list[dict[str, Any]], session: str) -> list[str]:
    updates = [m["params"] for m in messages if m.get("method") == "session/update"]
    assert {update["sessionId"] for update in updates} <= {session}
    return [one["update"]["content"]["text"] for one in updates if one["update"]["sessionUpdate"].startswith("agent")]


def births(told: list[str]) -> set[str]:
    """Whose conversations these words of the racing agent are."""
    return {text.split()[0] for text in told}


@pytest.mark.promise("P-session-11")
@pytest.mark.parametrize("dies", ["agent", "server"])
async def test_a_name_that_the_agent_gives_again_is_no_way_into_the_older_session(tmp_path: Path, dies: str) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("counts-anew")) as server,
        connected(server.url, "rude") as alice,
    ):
        old = await alice.new_session()
        await alice.prompt(old, "one", turnId="t")
        before = await history(alice, old)
        if dies == "agent":
            await kill_agent(alice)
            await _new_one_is_another(server, old, before)
    if dies == "server":
        async with running_server(tmp_path, "--no-token", config=config("counts-anew")) as server:
            await _new_one_is_another(server, old, before)


async def _new_one_is_another(server: Server, old: str, before: list[dict[str, Any]]) -> None:
    async with (
        connected(server.url, "rude") as alice,
        connected(server.url, "rude") as bob,
        alice.stream() as heard_by_alice,
        bob.stream() as heard_by_bob,
    ):
        new = await bob.new_session()
        assert new != old
        assert (await bob.prompt(new, "two", turnId="t"))["result"] == {"stopReason": "end_turn"}
        await heard_by_bob.wait_until(lambda e: "rude-1 hears two" in e.text())
        assert texts(await history(bob, new), new) == ["rude-1 is born", "rude-1 hears two"]
        assert (await history(alice, old))[: len(before)] == before
        assert texts(await history(alice, old), old) == ["rude-1 is born", "rude-1 hears one"]
        refused = await alice.prompt(old, "three")
        assert f"given its name 'rude-1' to a newer session, '{new}'" in refused["error"]["message"]
        assert heard_by_alice.updates() == []

        await kill_agent(bob)
        await bob.prompt(new, "four")
        assert texts(await history(bob, new), new)[-1] == "rude-1 hears four"


@pytest.mark.promise("P-session-11")
@pytest.mark.parametrize("is_restarted", [False, True], ids=["the agent dies", "the server is restarted"])
async def test_a_name_is_followed_also_when_nothing_is_known_of_the_first_session_that_had_it(
    tmp_path: Path, *, is_restarted: bool
) -> None:
    """As after a kill in the moment in which the first one was made: its history had begun, its record not."""
    await _leave_a_beginning(tmp_path / "data" / "history.db")
    async with (
        running_server(tmp_path, "--no-token", config=config("counts-anew")) as server,
        connected(server.url, "rude") as client,
    ):
        older = await client.new_session()
        assert older.startswith("rude-1~")
        await kill_agent(client)
        if not is_restarted:
            await _only_the_newest_goes_on(client, older)
    if is_restarted:
        async with (
            running_server(tmp_path, "--no-token", config=config("counts-anew")) as server,
            connected(server.url, "rude") as client,
        ):
            await _only_the_newest_goes_on(client, older)


async def _leave_a_beginning(path: Path) -> None:
    path.parent.mkdir()
    store = sqlite_store(path)
    await store.open()
    store.append(SessionKey(AgentId("rude"), SessionId("rude-1")).stream, "client", [b"{}"])
    await store.close()


async def _only_the_newest_goes_on(client: RpcClient, older: str) -> None:
    newer = await client.new_session()
    assert newer.startswith("rude-1~")
    assert newer != older
    await kill_agent(client)
    refused = await client.prompt(older, "for the older one")
    assert f"given its name 'rude-1' to a newer session, '{newer}'" in refused["error"]["message"]
    assert (await client.prompt(newer, "for the newer one"))["result"]["stopReason"] == "end_turn"
    assert texts(await history(client, newer), newer)[-1] == "rude-1 hears for the newer one"


async def test_the_newest_of_many_sessions_of_one_name_is_the_one_that_goes_on(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("counts-anew")) as server,
        connected(server.url, "rude") as client,
    ):
        made = []
        for _ in range(3):
            made.append(await client.new_session())
            await kill_agent(client)
        assert len(set(made)) == 3
        ended = [(await client.http.get(f"/v1/sessions/{name}")).json()["ended"] for name in made]
        assert ended == [True, True, False]
        assert (await client.prompt(made[-1], "hi"))["result"]["stopReason"] == "end_turn"


async def test_an_agent_that_names_a_session_as_one_under_way_is_refused(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("same")) as server,
        connected(server.url, "rude") as client,
    ):
        first = await client.new_session()
        refused = await client.request("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert "as one that is under way" in refused["error"]["message"]
        assert (await client.prompt(first, "hi"))["result"]["stopReason"] == "end_turn"
        await client.call("session/close", {"sessionId": first})
        assert await client.new_session() != first


async def test_an_agent_cannot_take_the_alias_of_another_session(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("counts-anew")) as server,
        connected(server.url, "rude") as client,
    ):
        await client.new_session(requestedSessionId="rude-2")
        refused = await client.request("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert "the alias of another" in refused["error"]["message"]
        await client.prompt("rude-2", "hi")
        assert texts(await history(client, "rude-2"), "rude-1")[-1] == "rude-1 hears hi"
        assert await client.new_session() == "rude-3"


async def test_of_two_sessions_that_two_processes_name_alike_at_once_one_goes_on_after_a_restart(
    tmp_path: Path,
) -> None:
    apart = config("counts-anew").replace("isolation = 'process'", "isolation = 'session'")
    async with running_server(tmp_path, "--no-token", config=apart) as server, connected(server.url, "rude") as client:
        made = await asyncio.gather(*(client.new_session() for _ in range(4)))
        assert len(set(made)) == 4
    async with running_server(tmp_path, "--no-token", config=apart) as server, connected(server.url, "rude") as client:
        answers = [await client.prompt(session, "hi") for session in made]
        refused = [answer["error"]["message"] for answer in answers if "error" in answer]
        assert len(refused) == 3
        assert all("given its name" in why for why in refused)


@pytest.mark.promise("P-session-11")
@pytest.mark.parametrize("older", [1, 2])
async def test_a_session_whose_namesake_was_deleted_is_never_taken_for_the_next_of_that_name(
    tmp_path: Path, older: int
) -> None:
    apart = config("counts-anew").replace("isolation = 'process'", "isolation = 'session'")
    async with running_server(tmp_path, "--no-token", config=apart) as server, connected(server.url, "rude") as client:
        first, *others = [await client.new_session() for _ in range(1 + older)]
        for session in others:
            await client.prompt(session, "one", turnId="t")
        kept = {session: texts(await history(client, session), session) for session in others}
        await client.call("session/delete", {"sessionId": first})
        new = await client.new_session()
        assert new not in others
        assert (await client.prompt(new, "two", turnId="t"))["result"] == {"stopReason": "end_turn"}
    async with running_server(tmp_path, "--no-token", config=apart) as server, connected(server.url, "rude") as client:
        for session in others:
            refused = await client.prompt(session, "three")
            why = refused["error"]["message"]
            assert "and that one was deleted" in why or "given its name" in why
            assert texts(await history(client, session), session) == kept[session]
        assert (await client.prompt(new, "four"))["result"] == {"stopReason": "end_turn"}
        assert texts(await history(client, new), new) == ["rude-1 is born", "rude-1 hears two", "rude-1 hears four"]


@pytest.mark.promise("P-session-11")
async def test_of_two_that_are_made_at_once_under_one_name_the_one_goes_on_that_the_agent_means_by_it(
    tmp_path: Path,
) -> None:
    """Two processes, and the one that made its session first answers last."""
    command = [sys.executable, str(Path(twin_agent.__file__)), str(tmp_path)]
    apart = f"[agents.rude]\nisolation = 'session'\ncommand = {command!r}\n"
    births: dict[str, str] = {}
    async with running_server(tmp_path, "--no-token", config=apart) as server, connected(server.url, "rude") as client:
        params = {"cwd": "/tmp", "mcpServers": []}
        for made in await asyncio.gather(*(client.call("session/new", params) for _ in range(2))):
            births[made["sessionId"]] = made["_meta"]["birth"]
        assert len(births) == 2
    async with running_server(tmp_path, "--no-token", config=apart) as server, connected(server.url, "rude") as client:
        answers = {session: await client.prompt(session, "who are you?") for session in births}
        assert sorted("result" in answer for answer in answers.values()) == [False, True]
        for session, birth in births.items():
            assert set(texts(await history(client, session), session)) <= {f"I am {birth}"}


async def test_a_name_given_to_a_session_that_we_refuse_is_gone_for_the_older_one_too(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("counts-anew")) as server,
        connected(server.url, "rude") as client,
    ):
        old = await client.new_session()
        await kill_agent(client)
        ours = {"sandboxagent.dev": {"permissionMode": "misspelt"}}
        refused = await client.request("session/new", {"cwd": "/tmp", "mcpServers": [], "_meta": ours})
        assert "misspelt" in refused["error"]["message"]
        assert "given its name" in (await client.prompt(old, "hi"))["error"]["message"]


async def test_a_turn_of_a_deleted_session_is_no_answer_for_the_next_of_its_name(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=config("same")) as server,
        connected(server.url, "rude") as client,
    ):
        for text in ("one", "two"):
            session = await client.new_session()
            assert session == "rude-1"
            await client.prompt(session, text, turnId="t")
            sent = [m for m in await history(client, session) if m.get("method") == "session/prompt"]
            assert [m["params"]["prompt"][0]["text"] for m in sent] == [text]
            await client.call("session/delete", {"sessionId": session})


@pytest.mark.promise("P-session-11")
@pytest.mark.parametrize("manner", ["at once", "slowly"])
async def test_a_new_session_that_gets_the_name_of_one_being_resumed_shares_nothing_with_it(
    tmp_path: Path, manner: str
) -> None:
    """Alice resumes her session while Bob makes one, and the agent gives his the name of hers."""
    command = [sys.executable, str(Path(racing_agent.__file__)), str(tmp_path), manner]
    config = f"[agents.rude]\nisolation = 'process'\ncommand = {command!r}\n"
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "rude") as alice,
        connected(server.url, "rude") as bob,
        alice.stream() as heard_by_alice,
        bob.stream() as heard_by_bob,
    ):
        old = await alice.new_session()
        await alice.prompt(old, "one", turnId="t")
        await kill_agent(alice)
        (tmp_path / "making").unlink()

        making = asyncio.create_task(bob.request("session/new", {"cwd": "/tmp", "mcpServers": []}))
        if manner == "slowly":
            await until((tmp_path / "making").exists)
        asking = asyncio.create_task(alice.prompt(old, "two", turnId="u"))
        await heard_by_alice.wait_until(lambda e: "turn_queued" in str(e.messages))
        (tmp_path / "go").touch()
        made, refused = await making, await asking
        assert "given its name" in refused["error"]["message"]
        new = made["result"]["sessionId"] if "result" in made else await bob.new_session()
        assert new != old
        assert (await bob.prompt(new, "three", turnId="t"))["result"] == {"stopReason": "end_turn"}
        await heard_by_bob.wait_until(lambda e: "hears three" in e.text())

        (birth,) = births(texts(await history(bob, new), new))
        assert birth in {"2", "3"}
        assert births(texts(heard_by_bob.messages, new)) == {birth}
        assert births(texts(heard_by_alice.messages, old)) == {"1"}
        assert texts(await history(alice, old), old) == ["1 is born", "1 hears one"]

        await kill_agent(alice)
        assert "given its name" in (await alice.prompt(old, "four"))["error"]["message"]
        assert texts(await history(alice, old), old) == ["1 is born", "1 hears one"]
