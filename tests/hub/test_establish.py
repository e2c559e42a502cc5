"""However a session is born, it is born whole: name, policy, record, announcement."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.rpc import RpcClient, connected, is_permission
from support.server import Server

META = "sandboxagent.dev"


def fork_params(session: str, **meta: Any) -> dict[str, Any]:
    return {"sessionId": session, "_meta": {META: meta}}


async def test_a_fork_keeps_the_policy_of_its_parent(client: RpcClient) -> None:
    session = await client.new_session(permissionMode="reject")
    async with client.stream() as events:
        fork = (await client.call("session/fork", fork_params(session)))["sessionId"]
        await client.prompt(fork, "tool ls")
        assert not any(is_permission(message) for message in events.messages)
        statuses = [update.get("status") for update in events.updates("tool_call_update")]
        assert statuses
        assert "completed" not in statuses, "it was rejected"


async def test_a_fork_may_have_a_policy_of_its_own(client: RpcClient) -> None:
    session = await client.new_session(permissionMode="reject")
    async with client.stream() as events:
        fork = (await client.call("session/fork", fork_params(session, permissionMode="allow")))["sessionId"]
        await client.prompt(fork, "tool ls")
        assert "completed" in [update.get("status") for update in events.updates("tool_call_update")]


async def test_a_fork_cannot_take_a_name_that_is_taken(client: RpcClient) -> None:
    first = await client.new_session(requestedSessionId="mine")
    refused = await client.request("session/fork", fork_params(first, requestedSessionId="mine"))
    assert "mine" in refused["error"]["message"]
    assert (await client.prompt("mine", "still the first"))["result"]["stopReason"] == "end_turn"
    named = await client.call("session/fork", fork_params(first, requestedSessionId="other"))
    info = await client.call("_sandboxagent/session/get", {"sessionId": "other"})
    assert info["sessionId"] == named["sessionId"] != first
    assert named["_meta"][META]["alias"] == "other"


async def test_of_many_who_want_one_name_at_once_one_gets_it(server: Server) -> None:
    async with connected(server.url) as client:
        params = {"cwd": "/tmp", "mcpServers": [], "_meta": {META: {"requestedSessionId": "wanted"}}}
        answers = await asyncio.gather(*(client.request("session/new", params) for _ in range(8)))
        made = [answer["result"]["sessionId"] for answer in answers if "result" in answer]
        assert len(made) == 1
        assert all("wanted" in answer["error"]["message"] for answer in answers if "error" in answer)
        info = await client.call("_sandboxagent/session/get", {"sessionId": "wanted"})
        assert info["sessionId"] == made[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [("cwd", 5), ("cwd", {"a": 1}), ("mcpServers", "abc"), ("mcpServers", [1]), ("additionalDirectories", "x")],
)
async def test_params_of_the_wrong_type_are_refused_by_name_and_harm_nobody(
    client: RpcClient, field: str, value: Any
) -> None:
    params = {"cwd": "/tmp", "mcpServers": [], field: value}
    refused = await client.request("session/new", params)
    assert refused["error"]["code"] == -32602
    assert field in refused["error"]["message"]
    await client.new_session()
    assert (await client.http.get("/v1/sessions")).status_code == 200
