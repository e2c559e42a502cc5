"""The JSON-RPC codes that ACP gives a meaning to have that meaning here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.rpc import RpcClient

NOT_FOUND = -32002
HERE: dict[str, Any] = {"cwd": "/tmp", "mcpServers": [], "prompt": []}


METHODS = (
    "session/prompt",
    "session/load",
    "session/resume",
    "session/fork",
    "session/close",
    "session/delete",
    "session/set_mode",
    "_sandboxagent/session/get",
    "_sandboxagent/session/events",
    "_sandboxagent/session/terminate",
)


def params_of(method: str, session: str) -> dict[str, Any]:
    return {**({**HERE, "modeId": "ask"} if method.startswith("session/") else {}), "sessionId": session}


@pytest.mark.parametrize("method", METHODS)
async def test_an_unknown_session_is_a_resource_that_was_not_found(client: RpcClient, method: str) -> None:
    error = (await client.request(method, params_of(method, "nobody")))["error"]
    assert error["code"] == NOT_FOUND
    assert "nobody" in str(error)


async def test_a_deleted_session_is_answered_in_the_words_for_one_that_never_was(client: RpcClient) -> None:
    session = await client.new_session()
    await client.prompt(session, "remember me")
    await client.call("session/delete", {"sessionId": session})
    for method in METHODS:
        deleted = (await client.request(method, params_of(method, session)))["error"]
        unknown = (await client.request(method, params_of(method, "nobody")))["error"]
        assert str(deleted).replace(session, "nobody") == str(unknown), method
    over_http = [await client.http.get(f"/v1/sessions/{name}") for name in (session, "nobody")]
    assert [answer.status_code for answer in over_http] == [404, 404]
    assert over_http[0].text.replace(session, "nobody") == over_http[1].text


async def test_a_missing_file_is_a_resource_that_was_not_found_for_clients_and_for_agents(
    client: RpcClient, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing")
    for method in ("read_file", "stat", "list_entries", "delete_entry"):
        error = (await client.request(f"_sandboxagent/fs/{method}", {"path": missing}))["error"]
        assert error["code"] == NOT_FOUND, method
    async with client.stream() as events:
        await client.prompt(await client.new_session(), f"read {missing}")
        await events.wait_until(lambda e: f"({NOT_FOUND})" in e.text())


async def test_an_unknown_agent_is_a_resource_that_was_not_found(client: RpcClient) -> None:
    wishes = {"_meta": {"sandboxagent.dev": {"agent": "nobody"}}}
    assert (await client.request("session/new", {**HERE, **wishes}))["error"]["code"] == NOT_FOUND


async def test_a_session_that_has_ended_and_a_name_that_is_taken_are_conflicts(client: RpcClient) -> None:
    session = await client.new_session(requestedSessionId="mine")
    taken = await client.request("session/new", {**HERE, "_meta": {"sandboxagent.dev": {"requestedSessionId": "mine"}}})
    await client.call("_sandboxagent/session/terminate", {"sessionId": session})
    ended = await client.prompt(session, "more")
    assert (taken["error"]["code"], ended["error"]["code"]) == (-32009, -32009)


async def test_an_error_says_which_agent_and_session_it_is_about_and_what_the_earlier_api_called_it(
    client: RpcClient,
) -> None:
    session = await client.new_session()
    died = await client.prompt(session, "crash 5")
    unknown = await client.prompt("nobody", "hello")
    wrong = await client.request("_sandboxagent/session/events", {"sessionId": session, "limit": "many"})
    about = [answer["error"]["data"]["_meta"]["sandboxagent.dev"] for answer in (died, unknown, wrong)]
    assert about == [
        {"agent": "mock", "sessionId": session, "errorType": "agent_process_exited"},
        {"agent": "mock", "sessionId": "nobody", "errorType": "session_not_found"},
        {"agent": "mock", "sessionId": session, "errorType": "invalid_request"},
    ]
    page = await client.call("_sandboxagent/session/events", {"sessionId": session})
    assert died["error"] in [event["envelope"].get("error") for event in page["events"]]
