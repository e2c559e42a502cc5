"""Clients of either version, with agents of either version, at `/acp`; and what is said fits the official schemas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.test_acp_clients import STEPS_2
from support.acp_schema import check, needs_schema
from support.node import run_node, steps
from support.rpc import Events, Message, RpcClient, connected, is_permission, option_of_kind
from support.server import Server, mock_agents, running_server

each_transport = pytest.mark.parametrize("transport", ["http", "ws"])


@pytest.fixture(scope="module")
def versions_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With an agent `second` that speaks version 2."""
    with asyncio.Runner() as runner:
        home = tmp_path_factory.mktemp("server")
        running = running_server(
            home, "--no-token", "--log-level", "warning", config=mock_agents(second="--protocol 2")
        )
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


@pytest.mark.timeout(400)
@each_transport
@pytest.mark.parametrize("agent", ["mock", "second"])
async def test_official_version_2_client_does_it_all_with_an_agent_of_either_version(
    transport: str, agent: str, node_clients: Path, versions_server: Server
) -> None:
    output = await run_node(node_clients, "conversation2.mjs", transport, versions_server.url, "none", agent)
    assert steps(output) == STEPS_2


@needs_schema
@pytest.mark.parametrize("agent", ["mock", "second"])
@pytest.mark.parametrize("version", [1, 2])
async def test_all_that_is_said_in_a_session_fits_the_schema_of_the_readers_version(
    version: int, agent: str, versions_server: Server
) -> None:
    words = "kinds; thought hm; plan; usage; image; tool ls; edit a.txt; terminal echo hi; demo"
    async with connected(versions_server.url, agent, version=version) as client, client.stream() as events:
        check(version, "InitializeResponse", client.initialized)
        answer = await client.call("session/new", {"cwd": "/tmp", "mcpServers": []})
        check(version, "NewSessionResponse", answer)
        session = answer["sessionId"]
        answering = asyncio.ensure_future(_allow_all(client, events))
        answer = await client.prompt(session, words)
        check(version, "PromptResponse", answer["result"])
        if version == 2:
            await events.wait_for(_is_end)
        answering.cancel()
        changed = await client.call("session/set_config_option", _choice(session, version))
        check(version, "SetSessionConfigOptionResponse", changed)
        before = len(events.messages)
        await client.call(*_replay(session, version))
        await events.wait_for(lambda message: "kinds" in str(message), after=before)
        listed = await client.call("session/list", {})
        check(version, "ListSessionsResponse", listed)
    definitions = {
        "session/update": "SessionNotification" if version == 1 else "UpdateSessionNotification",
        "session/request_permission": "RequestPermissionRequest",
    }
    told = [message for message in events.messages if message.get("method") in definitions]
    assert {message["method"] for message in told} == set(definitions)
    for message in told:
        if message["params"].get("update", {}).get("sessionUpdate") != "_mock_kind":  # passes as it is
            check(version, definitions[message["method"]], message["params"])


async def _allow_all(client: RpcClient, events: Events) -> None:
    position = 0
    while True:
        request = await events.wait_for(is_permission, after=position)
        position = events.messages.index(request) + 1
        await client.answer(request, option_of_kind(request, "allow_once"))


def _is_end(message: Message) -> bool:
    update = message.get("params", {}).get("update", {})
    return (update.get("sessionUpdate"), update.get("state")) == ("state_update", "idle")


def _choice(session: str, version: int) -> Message:
    choice = {"sessionId": session, "configId": "mode", "value": "code"}
    return choice if version == 1 else {**choice, "type": "id"}


def _replay(session: str, version: int) -> tuple[str, Message]:
    params = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
    return ("session/load", params) if version == 1 else ("session/resume", {**params, "replayFrom": {"type": "start"}})
