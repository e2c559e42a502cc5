"""Creating sessions and prompting with the fields that ACP lacks: aliases, wishes, policies, turn ids."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.rpc import RpcClient, connected, is_permission
from support.server import Server, mock_agents, running_server


async def sources(client: RpcClient, session: str, method: str) -> list[dict[str, Any]]:
    page = await client.call("_sandboxagent/session/events", {"sessionId": session})
    return [event for event in page["events"] if event["envelope"].get("method") == method]


async def test_an_alias_works_wherever_a_session_id_does(server: Server) -> None:
    async with connected(server.url) as client, client.stream() as events:
        native = await client.new_session(requestedSessionId="nice-name", title="My title")
        assert native != "nice-name"
        await client.prompt("nice-name", "hello")
        await events.wait_until(lambda e: e.text() == "hello")
        update = await events.wait_for(lambda m: m.get("method") == "session/update")
        assert update["params"]["sessionId"] == native
        await client.call("session/set_mode", {"sessionId": "nice-name", "modeId": "code"})
        running = asyncio.create_task(client.prompt("nice-name", "slow 1000"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        await client.notify("session/cancel", {"sessionId": "nice-name"})
        assert (await running)["result"]["stopReason"] == "cancelled"
        info = await client.call("_sandboxagent/session/get", {"sessionId": "nice-name"})
        assert info["sessionId"] == native
        assert info["_meta"]["sandboxagent.dev"]["alias"] == "nice-name"
        await client.call("session/load", {"sessionId": "nice-name", "cwd": "/tmp", "mcpServers": []})
        page = await client.call("_sandboxagent/session/events", {"sessionId": "nice-name"})
        assert page["sessionId"] == native
        params = {"cwd": "/tmp", "mcpServers": [], "_meta": {"sandboxagent.dev": {"requestedSessionId": "nice-name"}}}
        taken = await client.request("session/new", params)
        assert "nice-name" in taken["error"]["message"]


async def test_model_and_mode_are_applied_at_creation_and_the_outcome_is_told(client: RpcClient) -> None:
    wishes = {"model": "mock-large", "agentMode": "no-such-mode"}
    params = {"cwd": "/tmp", "mcpServers": [], "_meta": {"sandboxagent.dev": wishes}}
    ours = (await client.call("session/new", params))["_meta"]["sandboxagent.dev"]
    assert ours["model"] == {"applied": True, "value": "mock-large"}
    assert ours["agentMode"]["applied"] is False
    assert "no-such-mode" in ours["agentMode"]["reason"]


async def test_started_is_told_to_the_one_who_made_the_session(client: RpcClient) -> None:
    async with client.stream() as events:
        session = await client.new_session()
        started = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/started")
        assert started["params"]["sessionId"] == session
        assert started["params"]["agent"] == "mock"


async def test_tracing_fields_reach_the_agent_unchanged(client: RpcClient) -> None:
    trace = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=b",
        "baggage": "c",
    }
    session = (await client.call("session/new", {"cwd": "/tmp", "mcpServers": [], "_meta": trace}))["sessionId"]
    sent = await sources(client, session, "session/new")
    assert sent[0]["envelope"]["params"]["_meta"] == trace


async def test_the_legacy_map_of_mcp_servers_reaches_the_agent_in_acps_form(client: RpcClient) -> None:
    mcp = {
        "files": {"type": "local", "command": "mcp-files", "args": ["--root", "/"], "env": {"A": "1"}},
        "web": {"type": "remote", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "k"}},
        "off": {"type": "local", "command": "never", "enabled": False},
    }
    for place in ({"mcpServers": mcp}, {"mcpServers": [], "_meta": {"sandboxagent.dev": {"mcp": mcp}}}):
        session = (await client.call("session/new", {"cwd": "/tmp", **place}))["sessionId"]
        sent = (await sources(client, session, "session/new"))[0]["envelope"]["params"]["mcpServers"]
        assert [server["name"] for server in sent] == ["files", "web"]
        assert sent[0]["env"] == [{"name": "A", "value": "1"}]
        assert sent[1]["headers"] == [{"name": "X-Key", "value": "k"}]


async def test_wrong_wishes_are_refused_by_name(client: RpcClient) -> None:
    for wishes, word in (
        ({"title": 5}, "title"),
        ({"requestedSessionId": " "}, "requestedSessionId"),
        ({"permissionMode": {"execute": "perhaps"}}, "permissionMode.execute"),
        ({"mcp": {"x": {"type": "local"}}}, "command"),
        ({"agent": "nobody"}, "nobody"),
        ({"permissionMode": "alow"}, "'alow' is not known; available: ask, allow, reject, "),
    ):
        params = {"cwd": "/tmp", "mcpServers": [], "_meta": {"sandboxagent.dev": wishes}}
        answer = await client.request("session/new", params)
        assert word in answer["error"]["message"], answer
    assert (await client.call("session/list"))["sessions"] == []


async def test_an_mcp_server_that_lacks_something_is_refused_by_name(client: RpcClient) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"name": "x", "command": "/bin/x", "env": []}, "`args`; a server of type stdio has name, command, args, env"),
        ({"name": "x", "command": "/bin/x", "args": "-v", "env": []}, "Expected `array`, got `str`"),
        ({"name": "x", "command": "/bin/x", "args": [], "env": {"A": "1"}}, "at `$.env`"),
        ({"type": "http", "name": "x", "url": "http://h"}, "`headers`; a server of type http has name, url, headers"),
        ({"command": "/bin/x", "args": [], "env": []}, "`name`"),
    ]
    for server, said in refused:
        error = (await client.request("session/new", {"cwd": "/tmp", "mcpServers": [server]}))["error"]
        assert error["code"] == -32602
        assert said in error["message"]
    assert (await client.call("session/list"))["sessions"] == []


async def test_an_mcp_server_of_a_kind_that_is_new_is_for_the_agent_to_judge(client: RpcClient) -> None:
    servers = [{"type": "acp", "name": "x", "id": "y"}, {"name": "x", "command": "/x", "args": [], "env": [], "z": 1}]
    assert (await client.call("session/new", {"cwd": "/tmp", "mcpServers": servers}))["sessionId"]


@pytest.mark.parametrize(("mode", "outcome"), [("allow", "completed"), ("reject", "failed")])
@pytest.mark.promise("P-ask-2")
async def test_a_policy_answers_in_place_of_people_and_says_why_in_the_history(
    client: RpcClient, mode: str, outcome: str
) -> None:
    async with client.stream() as events:
        session = await client.new_session(permissionMode=mode)
        assert (await client.prompt(session, "tool"))["result"]["stopReason"] == "end_turn"
        await events.wait_until(lambda e: e.updates("tool_call_update")[-1:] and _last_status(e) == outcome)
        assert not any(is_permission(m) for m in events.messages)
    page = await client.call("_sandboxagent/session/events", {"sessionId": session})
    asked = next(e for e in page["events"] if e["envelope"].get("method") == "session/request_permission")
    answered = next(e for e in page["events"] if e["source"] == "server" and "result" in e["envelope"])
    assert answered["envelope"]["id"] == asked["envelope"]["id"]
    ours = answered["envelope"]["result"]["_meta"]["sandboxagent.dev"]
    assert ours["automatic"] is True
    assert "execute" in ours["reason"]


async def test_rules_go_by_the_kind_of_the_tool(client: RpcClient, tmp_path: Path) -> None:
    async with client.stream() as events:
        session = await client.new_session(cwd=str(tmp_path), permissionMode={"edit": "allow", "default": "ask"})
        await client.prompt(session, f"edit {tmp_path}/a.txt")
        await events.wait_until(lambda e: _last_status(e) == "completed")
        assert not any(is_permission(m) for m in events.messages)
        running = asyncio.create_task(client.prompt(session, "tool"))
        await events.wait_for(is_permission)
        await client.notify("session/cancel", {"sessionId": session})
        await running


async def test_a_servers_default_policy_holds_for_sessions_that_say_nothing(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config='permission_mode = "allow"\n') as server,
        connected(server.url) as client,
    ):
        session = await client.new_session()
        assert (await client.prompt(session, "tool"))["result"]["stopReason"] == "end_turn"


async def test_with_nobody_attached_a_permission_is_rejected_after_the_time_limit(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="permission_timeout_ms = 300\n") as server,
        connected(server.url) as watcher,
    ):
        async with connected(server.url) as owner:
            session = await owner.new_session()
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "tool"}]}
            message = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}
            await owner.post(message, Prefer="respond-async")
            async with owner.stream() as events:
                await events.wait_for(is_permission)
            await owner.close()
        async with asyncio.timeout(20):
            while not any(
                "nobody answered in time" in str(event["envelope"])
                for event in (await watcher.call("_sandboxagent/session/events", {"sessionId": session}))["events"]
            ):
                await asyncio.sleep(0.05)


@pytest.mark.promise("P-session-7")
async def test_a_turn_id_runs_once_however_often_it_is_sent(server: Server) -> None:
    async with connected(server.url) as one, connected(server.url) as other:
        session = await one.new_session()
        answers = await asyncio.gather(
            one.prompt(session, "slow 5", turnId="t1"),
            one.prompt(session, "slow 5", turnId="t1"),
            other.prompt(session, "slow 5", turnId="t1"),
        )
        assert [answer["result"]["stopReason"] for answer in answers] == ["end_turn"] * 3
        again = await other.prompt(session, "slow 5", turnId="t1")
        assert again["result"]["stopReason"] == "end_turn"
        assert len(await sources(one, session, "session/prompt")) == 1
        await one.prompt(session, "slow 1", turnId="t2")
        assert len(await sources(one, session, "session/prompt")) == 2


@pytest.mark.promise("P-session-7")
async def test_a_finished_turn_is_known_after_a_restart(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        session = await client.new_session()
        await client.prompt(session, "hello", turnId="t1")
        await server.stop()
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        assert (await client.prompt(session, "hello", turnId="t1"))["result"]["stopReason"] == "end_turn"
        assert len(await sources(client, session, "session/prompt")) == 1


@pytest.mark.promise("P-session-5")
async def test_a_turn_that_was_running_when_the_server_died_is_not_run_again_silently(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        session = await client.new_session()
        async with client.stream() as events:
            turn = asyncio.create_task(client.prompt(session, "slow 1000", turnId="t1"))
            await events.wait_until(lambda e: "tick 1" in e.text())
            server.kill()
            await asyncio.gather(turn, return_exceptions=True)
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        answer = await client.prompt(session, "slow 1000", turnId="t1")
        assert "another turnId" in answer["error"]["message"]


async def test_a_turn_that_never_ran_may_be_sent_again_under_its_id(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="max_queued_prompts = 1\n" + mock_agents(m="")) as server,
        connected(server.url) as client,
        client.stream() as events,
    ):
        session = await client.new_session()
        running = asyncio.create_task(client.prompt(session, "slow 1000"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        queued = asyncio.create_task(client.prompt(session, "queued"))
        refused = await _until_busy(client, session)
        assert refused["error"]["code"] == -32001
        await client.notify("session/cancel", {"sessionId": session})
        await asyncio.gather(running, queued)
        assert (await client.prompt(session, "now", turnId="t9"))["result"]["stopReason"] == "end_turn"


async def _until_busy(client: RpcClient, session: str) -> dict[str, Any]:
    """The queue holds one prompt; whether ours is the second or the first, one of two is refused."""
    await asyncio.sleep(0.3)
    return await client.prompt(session, "now", turnId="t9")


async def test_metadata_is_merged_and_null_removes(client: RpcClient) -> None:
    session = await client.new_session(metadata={"team": "red", "ticket": 7})
    params = {"sessionId": session, "metadata": {"ticket": None, "stage": "done", "title": "Renamed"}}
    changed = await client.call("_sandboxagent/session/set_metadata", params)
    assert changed["metadata"] == {"team": "red", "stage": "done", "title": "Renamed"}
    assert (await client.call("_sandboxagent/session/get", {"sessionId": session}))["title"] == "Renamed"


async def test_events_page_by_sequence_in_both_formats(client: RpcClient) -> None:
    session = await client.new_session()
    await client.prompt(session, "chunks 10 5")
    everything = (await client.call("_sandboxagent/session/events", {"sessionId": session}))["events"]
    assert [event["sequence"] for event in everything] == list(range(1, len(everything) + 1))
    assert all(event["time"].endswith("Z") for event in everything)
    page = await client.call("_sandboxagent/session/events", {"sessionId": session, "after": 3, "limit": 4})
    assert page["events"] == everything[3:7]
    assert page["hasMore"] is True
    beyond = await client.request("_sandboxagent/session/events", {"sessionId": session, "after": 10**6})
    assert "beyond the end" in beyond["error"]["message"]
    legacy: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        after = legacy[-1]["sequence"] if legacy else 0
        params = {"sessionId": session, "format": "legacy", "after": after, "limit": 3}
        got = await client.call("_sandboxagent/session/events", params)
        legacy += got["events"]
        has_more = got["hasMore"]
    kinds = [event["type"] for event in legacy]
    assert kinds[0] == "session.started"
    assert kinds.count("turn.started") == kinds.count("turn.ended") == 1
    assert kinds.count("item.delta") >= 10
    assert len({event["event_id"] for event in legacy}) == len(legacy)


async def test_extensions_are_advertised_and_unknown_ones_are_named(client: RpcClient) -> None:
    names = client.initialized["agentCapabilities"]["_meta"]["sandboxagent.dev"]["extensions"]
    for name in ("detach", "list_models", "set_metadata", "terminate", "events", "get", "list"):
        assert f"_sandboxagent/session/{name}" in names
    answer = await client.request("_sandboxagent/no/such", {})
    assert answer["error"]["code"] == -32601
    assert "_sandboxagent/session/events" in answer["error"]["message"]


def _last_status(events: Any) -> Any:
    statuses = [u.get("status") for u in events.updates("tool_call_update")]
    return statuses[-1] if statuses else None


async def test_whole_items_are_told_at_the_end_of_a_turn_to_those_who_ask(server: Server) -> None:
    wants = {"_meta": {"sandboxagent.dev": {"itemCompleted": True}}}
    async with (
        connected(server.url, capabilities=wants) as asking,
        connected(server.url) as plain,
        asking.stream() as seen,
        plain.stream() as other,
    ):
        session = await asking.new_session()
        await plain.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        await asking.prompt(session, "one two three")
        told = await seen.wait_for(
            lambda m: m.get("method") == "_sandboxagent/item/completed" and "assistant" in str(m)
        )
        assert told["params"]["sessionId"] == session
        assert "one two three" in str(told["params"]["item"])
        await other.wait_until(lambda e: e.text() == "one two three")
        assert not any(m.get("method") == "_sandboxagent/item/completed" for m in other.messages)


async def test_a_fork_keeps_the_directory_and_the_mcp_servers_unless_told_otherwise(
    client: RpcClient, tmp_path: Path
) -> None:
    servers = [{"name": "files", "command": "/bin/true", "args": [], "env": []}]
    made = await client.call("session/new", {"cwd": str(tmp_path), "mcpServers": servers})
    kept = (await client.call("session/fork", {"sessionId": made["sessionId"]}))["sessionId"]
    told = {"sessionId": made["sessionId"], "cwd": "/tmp", "mcpServers": []}
    other = (await client.call("session/fork", told))["sessionId"]
    for fork, cwd, expected in ((kept, str(tmp_path), servers), (other, "/tmp", [])):
        [asked] = [event["envelope"]["params"] for event in await sources(client, fork, "session/fork")]
        assert (asked["cwd"], asked["mcpServers"]) == (cwd, expected)
        assert (await client.call("_sandboxagent/session/get", {"sessionId": fork}))["cwd"] == cwd


async def test_finished_items_of_prompts_that_waited_in_the_queue_are_told_once_and_in_order(server: Server) -> None:
    wants = {"_meta": {"sandboxagent.dev": {"itemCompleted": True}}}
    async with connected(server.url, capabilities=wants) as client, client.stream() as events:
        session = await client.new_session()
        words = ["slow 20", "second", "third"]
        await asyncio.gather(*(client.prompt(session, word) for word in words))
        await client.prompt(session, "fourth")

        def told() -> list[str]:
            every = [m["params"]["item"] for m in events.messages if m.get("method") == "_sandboxagent/item/completed"]
            return [str(item["content"]) for item in every if item.get("role") == "assistant"]

        await events.wait_until(lambda e: len(told()) >= 4)
        assert "tick" in told()[0]
        assert [next(word for word in ("second", "third", "fourth") if word in text) for text in told()[1:]] == [
            "second",
            "third",
            "fourth",
        ]


async def test_a_session_tells_how_it_began_and_whether_its_newest_turn_failed(server: Server) -> None:
    async with connected(server.url) as client:
        session = await client.new_session()

        async def shown() -> dict[str, Any]:
            found: dict[str, Any] = (await client.http.get(f"/v1/sessions/{session}")).json()
            return found

        assert (await shown())["firstPrompt"] is None
        await client.prompt(session, "fail -32001\nthe disk")
        assert (await shown())["firstPrompt"] == "fail -32001 the disk"
        assert (await shown())["lastError"]
        await client.prompt(session, "hello")
        assert (await shown())["firstPrompt"] == "fail -32001 the disk"
        assert (await shown())["lastError"] is None


async def test_a_queued_prompt_is_taken_back_by_another_connection(server: Server) -> None:
    async with connected(server.url) as client, client.stream() as events, connected(server.url) as other:
        session = await client.new_session()
        running = asyncio.create_task(client.prompt(session, "slow 100000"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        queued = asyncio.create_task(client.prompt(session, "never"))
        told = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_queued")
        name = {"sessionId": session, "promptId": told["params"]["promptId"]}
        assert await other.call("_sandboxagent/session/take_back", name) == {"takenBack": True}
        assert (await queued)["error"]["code"] == -32800
        assert await other.call("_sandboxagent/session/take_back", name) == {"takenBack": False}
        await client.notify("session/cancel", {"sessionId": session})
        await running


async def test_a_version_that_is_asked_for_is_the_one_that_runs_or_the_session_is_refused(client: RpcClient) -> None:
    version = client.initialized["agentInfo"]["version"]
    await client.new_session(agentVersionRequested=version)
    params = {"cwd": "/tmp", "mcpServers": [], "_meta": {"sandboxagent.dev": {"agentVersionRequested": "0.0.0"}}}
    error = (await client.request("session/new", params))["error"]
    assert (error["code"], error["data"]["agentVersions"]) == (-32009, [version])
    assert "'0.0.0'" in error["message"]
    assert len((await client.call("session/list"))["sessions"]) == 1


async def test_the_offset_of_the_earlier_api_pages_through_events_and_an_unknown_argument_is_refused(
    client: RpcClient,
) -> None:
    session = await client.new_session()
    await client.prompt(session, "hello")
    everything = (await client.call("_sandboxagent/session/events", {"sessionId": session}))["events"]
    for wanted in ({"offset": 3}, {"after": 3}, {"offset": 3, "after": 3}):
        page = await client.call("_sandboxagent/session/events", {"sessionId": session, "limit": 2, **wanted})
        assert page["events"] == everything[3:5]
    for wrong, word in (({"offset": 3, "after": 4}, "offset"), ({"ofset": 3}, "ofset"), ({"offset": -1}, "offset")):
        error = (await client.request("_sandboxagent/session/events", {"sessionId": session, **wrong}))["error"]
        assert (error["code"], word in error["message"]) == (-32602, True)
