"""An agent that wants a login: its error says what to do, and `authenticate` reaches it."""

from __future__ import annotations

import sys
from pathlib import Path

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
            "set LOCKED_API_KEY in the environment of the server, or call authenticate with methodId mock-login"
        )
        refused = await client.request("authenticate", {"methodId": "other"})
        assert refused["error"]["code"] == -32602
        assert await client.call("authenticate", {"methodId": "mock-login"}) == {}
        assert await client.new_session()


async def test_auth_required_in_a_turn_is_the_agents_own_answer(client: RpcClient) -> None:
    session = await client.new_session()
    answer = await client.prompt(session, "auth")
    assert answer["error"]["code"] == -32000
    assert (await client.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


def test_the_login_command_of_the_manifest_is_named_and_the_agents_own_words_stay() -> None:
    from sandbox_agent.core.ids import AgentId
    from sandbox_agent.core.launch import LaunchSpec
    from sandbox_agent.hub.agents.authentication import with_advice

    spec = LaunchSpec(agent=AgentId("x"), command=("x",), login=("/opt/a b/x", "login"))
    said = with_advice({"code": -32000, "data": {"hint": "mine", "more": 1}}, spec, b"{}")["data"]
    assert (said["login"], said["hint"], said["more"], said["authMethods"]) == ("'/opt/a b/x' login", "mine", 1, [])
    assert with_advice({"code": -32000, "data": "text"}, None, b"{}")["data"]["details"] == "text"
    assert "run `'/opt/a b/x' login`" in with_advice({"code": -32000}, spec, b"{}")["data"]["hint"]
