"""The wire contract of `/v1/rpc`, row by row."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.rpc import CONNECTION, JSON, RpcClient, connected, prompt_params
from support.server import Server, running_server

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"agent": "mock"}}},
}
EVENTS = {"Accept": "text/event-stream"}


def assert_problem(response: httpx.Response, status: int, kind: str, *words: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["type"] == f"urn:sandbox-agent:error:{kind}"
    assert body["title"]
    for word in words:
        assert word in body["detail"], body


async def test_initialize_opens_a_connection_and_answers_from_the_servers_own_handshake(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        response = await http.post("/v1/rpc", json=INITIALIZE)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    result = response.json()["result"]
    assert response.json()["id"] == 0
    assert result["protocolVersion"] == 1
    assert result["agentInfo"]["name"] == "mock"
    ours = result["_meta"]["sandboxagent.dev"]
    assert ours["connectionId"] == response.headers[CONNECTION]
    assert ours["agent"] == "mock"
    assert "_sandboxagent/session/events" in ours["extensions"]
    assert result["agentCapabilities"]["_meta"]["sandboxagent.dev"]["extensions"] == ours["extensions"]


async def test_two_connections_share_one_agent_process(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token") as server,
        connected(server.url) as one,
        connected(server.url) as other,
    ):
        assert one.id != other.id
        first, second = await one.new_session(), await other.new_session()
        async with one.stream() as seen_one, other.stream() as seen_other:
            await asyncio.gather(one.prompt(first, "env HOME"), other.prompt(second, "env HOME"))
            await seen_one.wait_until(lambda e: e.text())
            await seen_other.wait_until(lambda e: e.text())
        assert server.log_text().count("agent started") == 1


async def test_a_request_is_answered_in_the_body_with_the_id_of_the_event_before_it(client: RpcClient) -> None:
    session = await client.new_session()
    message = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt_params(session, "chunks 5 1")}
    response = await client.post(message)
    assert response.json() == {"jsonrpc": "2.0", "id": "p", "result": {"stopReason": "end_turn"}}
    last = int(response.headers["X-ACP-Last-Event-Id"])
    async with client.stream() as events:
        await events.wait_until(lambda e: e.ids and e.ids[-1] >= last)
    before = events.messages[: events.ids.index(last) + 1]
    chunks = [m for m in before if m["params"].get("update", {}).get("sessionUpdate") == "agent_message_chunk"]
    assert len(chunks) == 5


@pytest.mark.parametrize("key", [0, -1, 1.5, "", "text", "7", None, 2**53 + 1])
async def test_ids_come_back_unchanged(client: RpcClient, key: Any) -> None:
    response = await client.post({"jsonrpc": "2.0", "id": key, "method": "session/list", "params": {}})
    assert response.status_code == 200
    assert response.json()["id"] == key
    assert type(response.json()["id"]) is type(key)


async def test_notifications_and_answers_are_accepted_without_a_body(client: RpcClient) -> None:
    session = await client.new_session()
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
    for message in (cancel, {"jsonrpc": "2.0", "id": 999, "result": {}}):
        response = await client.post(message)
        assert (response.status_code, response.content) == (202, b"")


async def test_respond_async_puts_the_answer_on_the_stream(client: RpcClient) -> None:
    session = await client.new_session()
    message = {"jsonrpc": "2.0", "id": "later", "method": "session/prompt", "params": prompt_params(session, "hi")}
    response = await client.post(message, Prefer="respond-async")
    assert (response.status_code, response.content) == (202, b"")
    async with client.stream() as events:
        answer = await events.wait_for(lambda m: m.get("id") == "later")
    assert answer["result"] == {"stopReason": "end_turn"}


@pytest.mark.promise("P-limit-2")
async def test_an_answer_that_comes_after_the_time_limit_is_a_504_and_then_an_event(tmp_path: Path) -> None:
    env = {"SANDBOX_AGENT_ACP_REQUEST_TIMEOUT_MS": "300"}
    config = _agent("slow", "import sys,json,time\n" + _SLOW_AGENT)
    async with (
        running_server(tmp_path, "--no-token", config=config, env=env) as server,
        connected(server.url, "slow") as client,
        client.stream() as events,
    ):
        response = await client.post({"jsonrpc": "2.0", "id": "x", "method": "_slow/echo", "params": {}})
        assert_problem(response, 504, "agent_timeout", "_slow/echo")
        answer = await events.wait_for(lambda m: m.get("id") == "x")
        assert answer["result"] == {"late": True}


async def test_a_post_that_goes_away_finds_its_answer_on_the_stream(client: RpcClient) -> None:
    session = await client.new_session()
    message = {"jsonrpc": "2.0", "id": "gone", "method": "session/prompt", "params": prompt_params(session, "slow 20")}
    with pytest.raises(httpx.ReadTimeout):
        await client.http.post("/v1/rpc", json=message, headers={CONNECTION: client.id}, timeout=0.3)
    async with client.stream() as events:
        answer = await events.wait_for(lambda m: m.get("id") == "gone")
    assert answer["result"]["stopReason"] == "end_turn"


async def test_delete_closes_once_and_again(client: RpcClient) -> None:
    for _ in range(2):
        response = await client.http.delete("/v1/rpc", headers={CONNECTION: client.id})
        assert (response.status_code, response.content) == (204, b"")
    assert_problem(await client.post(INITIALIZE), 404, "unknown_connection", client.id)


async def test_a_stream_ends_with_a_reason_when_its_connection_is_closed(client: RpcClient) -> None:
    async with client.stream() as events:
        await client.close()
        await events.wait_until(lambda e: e.is_over)
    assert any("connection closed" in comment for comment in events.comments)


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        (b"{", "malformed_message", "truncated"),
        (b"", "malformed_message", "truncated"),
        (b"[]", "malformed_message", "array"),
        (b'[{"jsonrpc":"2.0","method":"x"}]', "malformed_message", "array"),
        (b'"text"', "malformed_message", "object"),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', "malformed_message", "2.0"),
        (b'{"id":1,"method":"x"}', "malformed_message", "2.0"),
        (b'{"jsonrpc":"2.0","id":1}', "malformed_message", "neither"),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', "malformed_message", "id"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', "malformed_message", "method"),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', "malformed_message", "neither"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xff"}}', "malformed_message", "utf-8"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "malformed_message", "deep"),
    ],
)
async def test_what_is_not_one_message_is_a_400_that_says_why(
    client: RpcClient, body: bytes, kind: str, word: str
) -> None:
    assert_problem(await client.post(body), 400, kind, word)


async def test_a_batch_without_a_connection_is_refused_alike(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert_problem(await http.post("/v1/rpc", content=b"[]", headers=JSON), 400, "malformed_message")


async def test_only_initialize_may_come_without_a_connection(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        listing = {"jsonrpc": "2.0", "id": 1, "method": "session/list"}
        assert_problem(await http.post("/v1/rpc", json=listing), 400, "missing_connection", "X-ACP-Connection-Id")
        assert_problem(await http.get("/v1/rpc", headers=EVENTS), 400, "missing_connection")
        assert_problem(await http.delete("/v1/rpc"), 400, "missing_connection")


async def test_an_unknown_connection_is_a_404(server: Server) -> None:
    headers = {CONNECTION: "conn_nobody"}
    async with httpx.AsyncClient(base_url=server.url) as http:
        listing = {"jsonrpc": "2.0", "id": 1, "method": "session/list"}
        assert_problem(await http.post("/v1/rpc", json=listing, headers=headers), 404, "unknown_connection")
        assert_problem(await http.get("/v1/rpc", headers={**headers, **EVENTS}), 404, "unknown_connection")


async def test_initialize_must_name_an_agent_that_exists(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        nameless = {**INITIALIZE, "params": {"protocolVersion": 1}}
        assert_problem(await http.post("/v1/rpc", json=nameless), 400, "invalid_params", "sandboxagent.dev")
        params = {"_meta": {"sandboxagent.dev": {"agent": "nobody"}}}
        response = await http.post("/v1/rpc", json={**INITIALIZE, "params": params})
        assert_problem(response, 400, "unknown_agent", "nobody", "mock")
        assert "mock" in response.json()["known"]


async def test_media_types_are_checked_both_ways(client: RpcClient) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"session/list"}'
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        response = await client.post(body, **{"Content-Type": content_type})
        assert_problem(response, 415, "unsupported_media_type", content_type)
    assert_problem(await client.post(body, Accept="text/html"), 406, "not_acceptable", "text/html")
    assert (await client.post(body, Accept="text/html, */*;q=0.1")).status_code == 200
    headers = {CONNECTION: client.id, "Accept": "application/json"}
    assert_problem(await client.http.get("/v1/rpc", headers=headers), 406, "not_acceptable")


async def test_a_body_over_the_limit_is_a_413(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config="max_body_bytes = 1000\n") as server,
        connected(server.url) as client,
    ):
        big = b'{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"x":"' + b"x" * 2000 + b'"}}'
        assert_problem(await client.post(big), 413, "too_large", "1000")
        assert (await client.request("session/list"))["result"] is not None


async def test_other_verbs_are_a_405_that_names_the_right_ones(client: RpcClient) -> None:
    response = await client.http.put("/v1/rpc")
    assert_problem(response, 405, "method_not_allowed")
    assert {verb.strip() for verb in response.headers["allow"].split(",")} >= {"POST", "GET", "DELETE"}


async def test_a_second_reader_is_refused_unless_it_takes_the_stream_over(client: RpcClient) -> None:
    headers = {CONNECTION: client.id, **EVENTS}
    async with client.stream() as first:
        assert_problem(await client.http.get("/v1/rpc", headers=headers), 409, "stream_taken", "Last-Event-ID")
        async with client.stream(last_event_id=0) as second:
            await first.wait_until(lambda e: e.is_over)
            assert any("taken over" in comment for comment in first.comments)
            session = await client.new_session()
            await client.prompt(session, "hi")
            await second.wait_until(lambda e: e.text() == "hi")
    assert second.ids == list(range(1, len(second.ids) + 1))


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "99999", "9" * 30])
async def test_a_bad_last_event_id_is_a_400(client: RpcClient, value: str) -> None:
    headers = {CONNECTION: client.id, **EVENTS, "Last-Event-ID": value}
    assert_problem(await client.http.get("/v1/rpc", headers=headers), 400, "invalid_params", "Last-Event-ID")


async def test_the_first_reader_gets_what_came_before_it(client: RpcClient) -> None:
    session = await client.new_session()
    await client.prompt(session, "one")
    async with client.stream() as events:
        await events.wait_until(lambda e: e.text() == "one")
        assert events.ids[0] == 1
    await client.prompt(session, "two")
    async with client.stream() as rest:
        await rest.wait_until(lambda e: e.text() == "two")
        assert rest.ids[0] == events.ids[-1] + 1


async def test_a_connection_header_given_twice_is_refused(client: RpcClient) -> None:
    headers = [(CONNECTION, client.id), (CONNECTION, "conn_other"), ("Content-Type", "application/json")]
    response = await client.http.post("/v1/rpc", content=b"{}", headers=headers)
    assert response.status_code == 400


async def test_a_connection_may_initialize_again(client: RpcClient) -> None:
    answer = await client.request("initialize", INITIALIZE["params"])
    assert answer["result"]["_meta"]["sandboxagent.dev"]["connectionId"] == client.id


@pytest.mark.promise("P-deploy-2")
async def test_an_idle_stream_gets_a_heartbeat_that_is_a_comment(client: RpcClient) -> None:
    async with client.stream() as events:
        await events.wait_until(lambda e: ": heartbeat" in e.comments, deadline=40)
    assert events.ids == []


_SLOW_AGENT = """
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    else:
        time.sleep(1)
        result = {"late": True}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def _agent(name: str, program: str) -> str:
    return f"[agents.{name}]\ncommand = ['python3', '-c', '''{program}''']\n"
