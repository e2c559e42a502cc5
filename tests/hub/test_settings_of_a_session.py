"""Modes, models and options in whichever spelling the client and the agent use."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.rpc import RpcClient, connected
from support.server import mock_agents, running_server


async def current(client: RpcClient, session: str) -> tuple[str, str]:
    ours = (await client.call("_sandboxagent/session/get", {"sessionId": session}))["_meta"]["sandboxagent.dev"]
    return ours["mode"], ours["model"]


@pytest.mark.parametrize(
    "flags", ["", "--no-set-model --no-set-mode", "--legacy-models", "--dead-models", "--own-model-ids"]
)
async def test_model_and_mode_can_be_set_in_either_spelling(tmp_path: Path, flags: str) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m=flags)) as server,
        connected(server.url, "m") as client,
    ):
        session = await client.new_session()
        assert await current(client, session) == ("ask", "mock-small")
        await client.call("session/set_model", {"sessionId": session, "modelId": "mock-large"})
        await client.call("session/set_mode", {"sessionId": session, "modeId": "code"})
        assert await current(client, session) == ("code", "mock-large")
        for config, value in (("model", "mock-small"), ("mode", "ask")):
            params = {"sessionId": session, "configId": config, "value": value}
            await client.call("session/set_config_option", params)
        assert await current(client, session) == ("ask", "mock-small")


async def test_an_agent_with_two_lists_of_models_takes_values_of_either(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m="--own-model-ids")) as server,
        connected(server.url, "m") as client,
    ):
        session = await client.new_session()
        for value in ("mock-large[fast]", "mock-small", "mock-small[fast]", "mock-large"):
            await client.call("session/set_model", {"sessionId": session, "modelId": value})
        assert (await current(client, session))[1] == "mock-large"


async def test_a_value_that_the_agent_refuses_is_its_own_error(client: RpcClient) -> None:
    session = await client.new_session()
    answer = await client.request("session/set_model", {"sessionId": session, "modelId": "no-such"})
    assert "no-such" in str(answer["error"])
    assert (await current(client, session))[1] == "mock-small"


async def test_models_are_listed_alike_for_both_kinds_of_agent(tmp_path: Path) -> None:
    config = mock_agents(new="", old="--legacy-models")
    async with running_server(tmp_path, "--no-token", config=config) as server:
        for agent in ("new", "old"):
            async with connected(server.url, agent) as client:
                session = await client.new_session()
                listed = await client.call("_sandboxagent/session/list_models", {"sessionId": session})
                assert [model["id"] for model in listed["availableModels"]] == ["mock-small", "mock-large"]
                assert listed["currentModelId"] == "mock-small"
