"""An agent that wants a login: its error says what to do, and `authenticate` reaches it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from sandbox_agent.agents import Catalog
from sandbox_agent.agents.manifest import load_manifest
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.hub.agents.authentication import method_by_key, with_advice
from support.rpc import RpcClient, connected
from support.server import running_server

CONFIG = f"""
[agents.locked]
command = ["{sys.executable}", "-m", "sandbox_agent.mock_agent", "--needs-auth"]
env_passthrough = ["LOCKED_API_KEY", "LOCKED_HOME", "SANDBOX_AGENT_MOCK_STATE"]
"""
NEW = {"cwd": "/tmp", "mcpServers": []}


async def test_auth_required_reaches_the_client_with_methods_and_advice_and_a_login_helps(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=CONFIG) as server,
        connected(server.url, "locked") as client,
    ):
        assert [method["id"] for method in client.initialized["authMethods"]] == ["mock-login"]
        error = (await client.request("session/new", NEW))["error"]
        assert (error["code"], error["message"]) == (-32000, "Authentication required")
        assert error["data"]["authMethods"] == client.initialized["authMethods"]
        assert (error["data"]["env"], error["data"]["login"]) == (["LOCKED_API_KEY"], None)
        assert error["data"]["hint"] == (
            "set LOCKED_API_KEY in the environment of the server and restart it, "
            "or call authenticate with methodId mock-login"
        )
        refused = await client.request("authenticate", {"methodId": "other"})
        assert refused["error"]["code"] == -32602
        assert await client.call("authenticate", {"methodId": "mock-login"}) == {}
        assert await client.new_session()


@pytest.mark.parametrize("version", [1, 2])
async def test_an_agent_that_wants_a_login_is_logged_in_by_the_key_that_is_set(tmp_path: Path, version: int) -> None:
    keys = 'auth_keys = { mock-login = ["OTHER_API_KEY", "LOCKED_API_KEY"] }'
    config = CONFIG.replace('"--needs-auth"', f'"--needs-auth", "--protocol", "{version}"') + f"{keys}\n"
    async with (
        running_server(tmp_path, "--no-token", config=config, env={"LOCKED_API_KEY": "k"}) as server,
        connected(server.url, "locked") as client,
    ):
        sessions = await asyncio.gather(*(client.new_session() for _ in range(3)))
        assert len(set(sessions)) == 3
        assert (await client.prompt(sessions[0], "hello"))["result"]["stopReason"] == "end_turn"
        async with httpx.AsyncClient(trust_env=False) as http:
            listed = (await http.get(f"{server.url}/v1/agents/locked")).json()
        assert listed["serverStatus"]["protocolVersion"] == version


async def test_a_key_that_the_agent_does_not_take_leaves_its_own_error_with_advice(tmp_path: Path) -> None:
    config = CONFIG + 'auth_keys = { no-such-login = ["LOCKED_API_KEY"] }\n'
    async with (
        running_server(tmp_path, "--no-token", config=config, env={"LOCKED_API_KEY": "k"}) as server,
        connected(server.url, "locked") as client,
    ):
        error = (await client.request("session/new", NEW))["error"]
        assert (error["code"], error["data"]["env"]) == (-32000, ["LOCKED_API_KEY"])


@pytest.mark.parametrize(
    ("method", "env", "is_taken"),
    [
        ({"id": "api-key"}, {"X_API_KEY": "k"}, True),
        ({"id": "api-key"}, {"X_API_KEY": ""}, False),
        ({"id": "browser"}, {"X_API_KEY": "k"}, False),
        ({"id": "v", "vars": [{"name": "A"}, {"name": "B", "optional": True}]}, {"A": "1"}, True),
        ({"id": "v", "vars": [{"name": "A"}, {"name": "B"}]}, {"A": "1"}, False),
        ({"id": "v", "vars": []}, {"A": "1"}, False),
        ({"id": "x", "description": "Requires setting `Y_API_KEY`."}, {"Y_API_KEY": "k"}, True),
        ({"id": "x", "description": "Uses MY_Y_API_KEY"}, {"Y_API_KEY": "k"}, False),
        ({"name": "no id"}, {"X_API_KEY": "k"}, False),
        ("no object", {"X_API_KEY": "k"}, False),
    ],
)
def test_a_method_is_taken_when_the_variable_that_satisfies_it_is_set(
    method: Any, env: dict[str, str], is_taken: bool
) -> None:
    keys: dict[str, tuple[str, ...]] = {"api-key": ("X_API_KEY",)}
    spec = LaunchSpec(agent=AgentId("x"), command=("x",), env_passthrough=("Y_API_KEY",), auth_keys=keys)
    handshake = msgspec.json.encode({"authMethods": [method]})
    assert (method_by_key(handshake, spec, env) is not None) is is_taken


async def test_auth_required_in_a_turn_is_the_agents_own_answer(client: RpcClient) -> None:
    session = await client.new_session()
    answer = await client.prompt(session, "auth")
    assert answer["error"]["code"] == -32000
    assert (await client.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


def test_the_login_command_of_the_manifest_is_named_and_the_agents_own_words_stay() -> None:
    spec = LaunchSpec(agent=AgentId("x"), command=("x",), login=("/opt/a b/x", "login"))
    said = with_advice({"code": -32000, "data": {"hint": "mine", "more": 1}}, spec, b"{}")["data"]
    assert (said["login"], said["hint"], said["more"], said["authMethods"]) == ("'/opt/a b/x' login", "mine", 1, [])
    assert with_advice({"code": -32000, "data": "text"}, None, b"{}")["data"]["details"] == "text"
    assert (
        "run `sandbox-agent login x` on the machine of the server"
        in with_advice({"code": -32000}, spec, b"{}")["data"]["hint"]
    )


@pytest.mark.parametrize(("agent", "helps"), [("cline", "CLINE_API_KEY"), ("auggie", "AUGMENT_SESSION_AUTH")])
def test_the_advice_names_only_variables_that_open_a_session(tmp_path: Path, agent: str, helps: str) -> None:
    entry = load_manifest().agents[agent]
    command = entry.command[0].removeprefix("{bin}/")
    (tmp_path / command).write_text("#!/bin/sh\n")
    (tmp_path / command).chmod(0o755)
    env = {"PATH": str(tmp_path), "ANTHROPIC_API_KEY": "x", "AUGMENT_API_TOKEN": "x"}
    catalog = Catalog({}, env=env, require_preinstall=True)
    said = with_advice({"code": -32000}, catalog.present(AgentId(agent)), b"{}")["data"]
    assert said["env"] == [helps]
    assert not catalog.describe(AgentId(agent)).credentials_available
    assert Catalog({}, env={**env, helps: "x"}).describe(AgentId(agent)).credentials_available
