"""What is known of a session is kept, and told alike wherever it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.noting import asked, noting_client
from support.rpc import RpcClient, connected
from support.server import running_server

META = "sandboxagent.dev"
V1_CLOSE: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"close": {}}}}
V2_SESSIONS: dict[str, Any] = {
    "protocolVersion": 2,
    "info": {"name": "noting", "version": "1"},
    "capabilities": {"session": {}},
}


@pytest.mark.parametrize("verb", ["resume", "load"])
async def test_additional_directories_are_sent_again_when_a_session_is_taken_up_after_a_crash(
    tmp_path: Path, verb: str
) -> None:
    can: dict[str, Any] = {"sessionCapabilities": {"resume": {}}} if verb == "resume" else {"loadSession": True}
    async with noting_client(tmp_path, {"protocolVersion": 1, "agentCapabilities": can}) as (client, notes):
        params = {"cwd": "/tmp", "mcpServers": [], "additionalDirectories": ["/usr", "/var"]}
        session = (await client.call("session/new", params))["sessionId"]
        await client.prompt(session, "die")
        await client.prompt(session, "hello")
        [again] = asked(notes, f"session/{verb}")
        assert again["additionalDirectories"] == ["/usr", "/var"]
        plain = await client.new_session()
        await client.prompt(plain, "die")
        await client.prompt(plain, "hello")
        assert "additionalDirectories" not in asked(notes, f"session/{verb}")[-1]


async def test_additional_directories_are_shown_in_lists_and_kept_over_a_restart(tmp_path: Path) -> None:
    directories = ["/usr", "/var"]
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        params = {"cwd": "/tmp", "mcpServers": [], "additionalDirectories": directories}
        session = (await client.call("session/new", params))["sessionId"]
        fork = (await client.call("session/fork", {"sessionId": session}))["sessionId"]
        plain = await client.new_session()
        await server.stop()
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        listed = {one["sessionId"]: one for one in (await client.call("session/list"))["sessions"]}
        assert listed[session]["additionalDirectories"] == listed[fork]["additionalDirectories"] == directories
        assert "additionalDirectories" not in listed[plain]
        over_http = (await client.http.get(f"/v1/sessions/{session}")).json()
        assert over_http["additionalDirectories"] == directories


async def test_a_title_that_the_agent_sets_to_null_is_cleared(tmp_path: Path) -> None:
    async with noting_client(tmp_path) as (client, _):
        session = await client.new_session()
        for title in ("First", None, "Second"):
            await client.prompt(session, f"title {'null' if title is None else chr(34) + title + chr(34)}")
            assert (await client.call("_sandboxagent/session/get", {"sessionId": session}))["title"] == title


async def test_a_title_that_a_client_sets_to_null_is_cleared_and_the_agents_counts_again(tmp_path: Path) -> None:
    async with noting_client(tmp_path) as (client, _):
        session = await client.new_session(title="Mine")
        await client.prompt(session, 'title "The agent\'s"')
        told = await client.call("_sandboxagent/session/get", {"sessionId": session})
        assert told["title"] == "Mine", "a person's title stays"
        params = {"sessionId": session, "metadata": {"title": None}}
        await client.call("_sandboxagent/session/set_metadata", params)
        assert (await client.call("_sandboxagent/session/get", {"sessionId": session}))["title"] is None
        await client.prompt(session, 'title "The agent\'s"')
        assert (await client.call("_sandboxagent/session/get", {"sessionId": session}))["title"] == "The agent's"


@pytest.mark.parametrize("initialized", [V1_CLOSE, V2_SESSIONS], ids=["v1", "v2"])
async def test_a_close_reaches_an_agent_that_declares_it_in_either_spelling(
    tmp_path: Path, initialized: dict[str, Any]
) -> None:
    async with noting_client(tmp_path, initialized) as (client, notes):
        session = await client.new_session()
        await client.call("session/close", {"sessionId": session})
        assert [params["sessionId"] for params in asked(notes, "session/close")] == [session]


async def test_a_close_does_not_reach_an_agent_that_has_none(tmp_path: Path) -> None:
    async with noting_client(tmp_path, {"protocolVersion": 1, "agentCapabilities": {}}) as (client, notes):
        await client.call("session/close", {"sessionId": await client.new_session()})
        assert asked(notes, "session/close") == []


async def test_everything_that_is_known_of_a_session_is_told_alike_in_lists_in_get_and_over_http(
    client: RpcClient,
) -> None:
    secret = "sk-very-secret"
    mcp = {
        "files": {"type": "local", "command": "mcp-files", "args": ["--all"], "env": {"KEY": secret}},
        "web": {"type": "remote", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": secret}},
    }
    rules = {"default": "ask", "read": "allow"}
    wishes: dict[str, Any] = {
        "mcp": mcp,
        "skills": {"sources": []},
        "permissionMode": rules,
        "metadata": {"ticket": 7},
        "title": "T",
    }
    session = await client.new_session(requestedSessionId="alias", **wishes)
    expected = {
        "agent": "mock",
        "alias": "alias",
        "nativeSessionId": session,
        "mcp": {
            "files": {"type": "stdio", "command": "mcp-files", "args": ["--all"], "env": {"KEY": "[redacted]"}},
            "web": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "[redacted]"}},
        },
        "skills": {"sources": []},
        "permissionMode": rules,
        "metadata": {"ticket": 7, "title": "T"},
    }
    [listed] = (await client.call("session/list"))["sessions"]
    got = await client.call("_sandboxagent/session/get", {"sessionId": session})
    [over_http] = (await client.http.get("/v1/sessions")).json()["sessions"]
    shown = (await client.http.get(f"/v1/sessions/{session}")).json()
    for told in (listed["_meta"][META], got["_meta"][META], over_http, shown):
        assert {name: told[name] for name in expected} == expected
        assert secret not in str(told)
    assert listed == got
    named = {"sessionId", "cwd", "title", "updatedAt", "additionalDirectories"}
    assert {name for name, value in over_http.items() if value is not None} - named == listed["_meta"][META].keys()


async def test_who_is_attached_is_told_of_a_title_at_creation_and_whenever_metadata_changes(client: RpcClient) -> None:
    async with client.stream() as events:
        session = await client.new_session(title="First", metadata={"ticket": 7})
        await client.call("_sandboxagent/session/set_metadata", {"sessionId": session, "metadata": {"title": "Second"}})
        await client.call("_sandboxagent/session/set_metadata", {"sessionId": session, "metadata": {"title": None}})
        await events.wait_until(lambda e: len(e.updates("session_info_update")) == 3)
        told = events.updates("session_info_update")
        assert [update["title"] for update in told] == ["First", "Second", None]
        assert told[-1]["_meta"][META] == {"metadata": {"ticket": 7}}
        assert all(update["updatedAt"].endswith("Z") for update in told)
    async with client.stream() as events:
        await client.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        await events.wait_until(lambda e: len(e.updates("session_info_update")) == 3)


async def test_a_session_without_a_title_of_its_own_is_told_of_no_change(client: RpcClient) -> None:
    async with client.stream() as events:
        await client.new_session()
        await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/started")
        assert events.updates("session_info_update") == []
