"""A client of another version of ACP than the agent's leaves anywhere in a turn and goes on exactly there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from support.retold import SEQUENCES, entries, follow, of_history, sequence
from support.rpc import Events, Message, RpcClient, connected, is_permission, option_of_kind
from support.server import Server, running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMELESS = str(Path(__file__).parent.parent / "support" / "nameless_agent.py")
AGENTS = {
    "one": [sys.executable, NAMELESS, "--echo-prompts"],
    "two": [sys.executable, "-m", "sandbox_agent.mock_agent", "--echo-prompts", "--protocol", "2"],
}
TURN = "slow 2; thought hm; plan; tool ls; kinds; thought again; slow 12; late-update"
SPOKEN = {"one": 1, "two": 2}

each_pair = pytest.mark.parametrize(("agent", "version"), [("one", 2), ("two", 1)])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    tables = "\n".join(f"[agents.{name}]\ncommand = {command!r}\n" for name, command in AGENTS.items())
    async with running_server(tmp_path_factory.mktemp("home"), "--no-token", config=tables) as running:
        yield running


@asynccontextmanager
async def reading(server: Server, agent: str, version: int) -> AsyncIterator[tuple[RpcClient, Events]]:
    """A client that wants sequences; its connection ends with the block."""
    opened = connected(server.url, agent, version=version, capabilities=SEQUENCES)
    async with opened as client, client.stream() as events:
        yield client, events
        await client.close()


async def change_mode(client: RpcClient, session: str, mode: str) -> None:
    if client.initialized["protocolVersion"] == 1:
        await client.call("session/set_mode", {"sessionId": session, "modeId": mode})
    else:
        wish = {"sessionId": session, "configId": "mode", "type": "select", "value": mode}
        await client.call("session/set_config_option", wish)


async def run_turn(client: RpcClient, events: Events, session: str, mode: str) -> None:
    """With a permission, and a change of the mode while it waits."""
    before = len(events.messages)
    prompting = asyncio.create_task(client.prompt(session, TURN))
    asked = await events.wait_for(is_permission, after=before)
    await change_mode(client, session, mode)
    await client.answer(asked, option_of_kind(asked, "allow_once"))
    assert "result" in await prompting
    await events.wait_for(lambda message: "'late'" in str(message), after=before)


async def retold(server: Server, agent: str, version: int, session: str, after: int) -> list[Message]:
    """What one who comes after entry `after` is told of the history, up to now."""
    async with reading(server, agent, version) as (client, events):
        await follow(client, events, session, after)
        return of_history(events, spoken=SPOKEN[agent])


@each_pair
async def test_whoever_comes_after_any_entry_is_told_the_rest_as_one_who_never_left(
    server: Server, agent: str, version: int
) -> None:
    async with reading(server, agent, version) as (client, events):
        session = await client.new_session()
        for mode in ("code", "ask"):
            await run_turn(client, events, session, mode)
        whole = list(entries(of_history(events, spoken=SPOKEN[agent])))
        numbers = [at for at, _ in whole]
        assert numbers == sorted(set(numbers))
        assert len(numbers) > 60
        if agent == "one":
            made = [name for _, (line,) in whole if (name := line["params"]["update"].get("messageId"))]
            assert len(set(made)) > 8
            assert "sandboxagent:" in made[0]
        if agent == "two":
            assert max(len(lines) for _, lines in whole) > 1
        for after in [0, *numbers]:
            rest = [message for at, lines in whole if at > after for message in lines]
            assert await retold(server, agent, version, session, after) == rest, after


@each_pair
async def test_one_who_leaves_again_and_again_in_a_turn_misses_nothing_and_hears_nothing_twice(
    server: Server, agent: str, version: int
) -> None:
    async with reading(server, agent, SPOKEN[agent]) as (prompter, heard):
        session = await prompter.new_session()
        turn = asyncio.create_task(run_turn(prompter, heard, session, "code"))
        seen: list[Message] = []
        visits = 0
        while "'late'" not in str(seen[-1:]):
            visits += 1
            after = sequence(seen[-1]) if seen else 0
            async with reading(server, agent, version) as (client, events):
                await follow(client, events, session, after or 0)
                await events.wait_until(lambda e: of_history(e, spoken=SPOKEN[agent]))
                news = list(entries(of_history(events, spoken=SPOKEN[agent])))
                seen += [message for _, lines in news[: visits % 3 + 1] for message in lines]
        await turn
        assert visits > 10
        assert seen == await retold(server, agent, version, session, 0)


@each_pair
async def test_one_who_joins_in_the_middle_of_a_message_hears_it_go_on_under_its_name(
    server: Server, agent: str, version: int
) -> None:
    async with (
        reading(server, agent, SPOKEN[agent]) as (prompter, heard),
        reading(server, agent, version) as (late, events),
    ):
        session = await prompter.new_session()
        turn = asyncio.create_task(prompter.prompt(session, "slow 20; tool ls"))
        await heard.wait_until(lambda e: len(e.updates("agent_message_chunk")) > 4)
        await late.call("session/resume", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        asked = await events.wait_for(is_permission)
        if version == 2:
            await events.wait_until(lambda e: e.updates("state_update")[-1]["state"] == "requires_action")
        await late.answer(asked, option_of_kind(asked, "allow_once"))
        assert "result" in await turn
        await events.wait_until(lambda e: "tool ran" in e.text())
        seen = list(entries(of_history(events, spoken=SPOKEN[agent])))
        rest = list(entries(await retold(server, agent, version, session, seen[0][0] - 1)))
        assert seen == rest[: len(seen)]


async def test_one_who_comes_back_is_told_what_the_session_does_now(server: Server) -> None:
    async with reading(server, "one", 1) as (prompter, heard):
        session = await prompter.new_session()
        turn = asyncio.create_task(prompter.prompt(session, "tool ls"))
        asked = await heard.wait_for(is_permission)
        async with reading(server, "one", 2) as (client, events):
            await follow(client, events, session, 0)
            assert [update["state"] for update in events.updates("state_update")] == ["requires_action"]
            await events.wait_for(is_permission)
            await prompter.answer(asked, option_of_kind(asked, "allow_once"))
            await turn
            await events.wait_until(lambda e: e.updates("state_update")[-1]["state"] == "idle")
            states = [update["state"] for update in events.updates("state_update")]
            assert states == ["requires_action", "running", "idle"]
