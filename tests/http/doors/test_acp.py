"""The rules of `/acp` over HTTP that its clients lean on."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from support.doors import AcpDoorClient, client_at, initialize_params
from support.rpc import DEADLINE, is_permission, option_of_kind, prompt_params, sse_blocks
from support.server import Server

JSON = {"Content-Type": "application/json"}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params("mock")}


def http_to(server: Server) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=DEADLINE)


async def opened(http: httpx.AsyncClient) -> dict[str, str]:
    response = await http.post("/acp", json=INITIALIZE)
    assert response.status_code == 200
    return {"Acp-Connection-Id": response.headers["Acp-Connection-Id"]}


async def first_messages(http: httpx.AsyncClient, headers: dict[str, str], number: int) -> list[Any]:
    """The first messages of a stream; the reader then leaves."""
    found: list[Any] = []
    async with http.stream("GET", "/acp", headers={**headers, "Accept": "text/event-stream"}) as response:
        assert response.status_code == 200
        async for blocks in sse_blocks(response.aiter_bytes()):
            found += [
                msgspec.json.decode(b.split(b"\n", 2)[2].removeprefix(b"data: ")) for b in blocks if b[:1] != b":"
            ]
            if len(found) >= number:
                break
    return found


async def test_every_post_but_initialize_is_accepted_and_answered_on_a_stream(server: Server) -> None:
    async with http_to(server) as http:
        headers = await opened(http)
        message = {"jsonrpc": "2.0", "id": "n", "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}
        response = await http.post("/acp", json=message, headers=headers)
        assert (response.status_code, response.content) == (202, b"")
        [answer] = await first_messages(http, headers, 1)
        assert answer["id"] == "n"
        assert answer["result"]["sessionId"]


async def test_answers_that_tell_of_a_session_are_on_the_connection_stream_and_others_on_its_own(
    server: Server,
) -> None:
    async with http_to(server) as http, client_at("acp-http", server.url) as other:
        session = await other.new_session()
        await other.prompt(session, "to be replayed")
        headers = await opened(http)
        load = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
        await http.post("/acp", json=_request(1, "session/load", load), headers=headers)
        [answer] = await first_messages(http, headers, 1)
        assert answer["id"] == 1
        assert answer["result"]["sessionId"] == session, "clients look there for the stream to open"
        await http.post("/acp", json=_request(2, "session/prompt", prompt_params(session, "now")), headers=headers)
        on_session = {**headers, "Acp-Session-Id": session}
        async with http.stream("GET", "/acp", headers={**on_session, "Accept": "text/event-stream"}) as response:
            seen = b""
            async for chunk in response.aiter_bytes():
                seen += chunk
                if b'"id":2' in seen:
                    break
        assert b"to be replayed" in seen
        assert seen.startswith(b": open\n\n")


async def test_session_stream_may_be_opened_before_anybody_knows_the_session(server: Server) -> None:
    async with client_at("acp-http", server.url) as client, client_at("acp-http", server.url) as owner:
        session = await owner.new_session()
        await owner.prompt(session, "said before")
        await client.follow(session)
        await client.load(session)
        await client.events.wait_until(lambda events: "said before" in events.text())
        await client.follow("a session that never comes")


async def test_both_kinds_of_stream_replay_after_last_event_id(server: Server) -> None:
    async with http_to(server) as http:
        headers = await opened(http)
        new = {"cwd": "/tmp", "mcpServers": []}
        for key in (1, 2, 3):
            await http.post("/acp", json=_request(key, "session/new", new), headers=headers)
        answers = await first_messages(http, headers, 3)
        session = answers[0]["result"]["sessionId"]
        again = await first_messages(http, {**headers, "Last-Event-ID": "1"}, 2)
        assert [m["id"] for m in again[:2]] == [m["id"] for m in answers[1:3]]
        await http.post("/acp", json=_request(4, "session/prompt", prompt_params(session, "once")), headers=headers)
        own = {**headers, "Acp-Session-Id": session}
        whole = await first_messages(http, {**own, "Last-Event-ID": "0"}, 3)
        rest = await first_messages(http, {**own, "Last-Event-ID": "1"}, 2)
        assert rest[0] == whole[1]


async def test_second_reader_of_a_stream_is_refused_and_one_that_says_where_takes_over(server: Server) -> None:
    async with client_at("acp-http", server.url) as client, http_to(server) as http:
        session = await client.new_session()
        for extra in ({}, {"Acp-Session-Id": session}):
            headers = {**client._headers, **extra, "Accept": "text/event-stream"}
            assert (await http.get("/acp", headers=headers)).status_code == 409
        taken = {**client._headers, "Last-Event-ID": "0"}
        assert (await first_messages(http, taken, 1))[0]["result"]["sessionId"] == session


async def test_answers_need_no_session_header(server: Server) -> None:
    async with client_at("acp-http", server.url) as client:
        assert isinstance(client, AcpDoorClient)
        session = await client.new_session()
        turn = client.start_prompt(session, "tool ls")
        asked = await client.events.wait_for(is_permission)
        await client.answer(asked, option_of_kind(asked, "reject_once"))
        assert (await turn)["result"]["stopReason"] == "end_turn"


async def test_session_header_that_contradicts_the_message_is_refused(server: Server) -> None:
    async with http_to(server) as http:
        headers = {**await opened(http), "Acp-Session-Id": "another"}
        message = _request(1, "session/prompt", prompt_params("this", "x"))
        assert (await http.post("/acp", json=message, headers=headers)).status_code == 400


async def test_delete_is_accepted_also_twice_and_ends_the_streams(server: Server) -> None:
    async with client_at("acp-http", server.url) as client:
        await client.close()
        await client.close()
        assert await client.send_raw(msgspec.json.encode(_request(1, "session/list", {}))) == 404


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"[]", JSON, 501),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', JSON, 501),
        (b"{", JSON, 400),
        (msgspec.json.encode(INITIALIZE), {"Content-Type": "text/plain"}, 415),
        (msgspec.json.encode(INITIALIZE), {**JSON, "Accept": "text/html"}, 406),
        (b'{"jsonrpc":"2.0","id":1,"method":"session/list"}', JSON, 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"session/list"}', {**JSON, "Acp-Connection-Id": "conn_nobody"}, 404),
        (msgspec.json.encode({**INITIALIZE, "params": initialize_params("nobody")}), JSON, 400),
    ],
)
async def test_post_that_cannot_be_served_says_why(
    server: Server, content: bytes, headers: dict[str, str], status: int
) -> None:
    async with http_to(server) as http:
        response = await http.post("/acp", content=content, headers=headers)
        assert response.status_code == status
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["detail"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),
        ({"Acp-Connection-Id": "conn_nobody"}, 404),
        ({"Acp-Connection-Id": "OWN", "Accept": "application/json"}, 406),
        ({"Acp-Connection-Id": "OWN", "Last-Event-ID": "x"}, 400),
        ({"Acp-Connection-Id": "OWN", "Last-Event-ID": "7"}, 400),
        ({"Acp-Connection-Id": "RPC"}, 404),
    ],
)
async def test_get_that_cannot_be_served_says_why(server: Server, headers: dict[str, str], status: int) -> None:
    async with http_to(server) as http, client_at("rpc", server.url) as rpc:
        known = {"OWN": (await opened(http))["Acp-Connection-Id"], "RPC": rpc._headers["X-ACP-Connection-Id"]}
        sent = {name: known.get(value, value) for name, value in headers.items()}
        response = await http.get("/acp", headers={"Accept": "text/event-stream", **sent})
        assert response.status_code == status


@pytest.mark.parametrize("query", ["?agent=mock", ""])
async def test_agent_comes_from_the_query_or_is_the_default(server: Server, query: str) -> None:
    async with http_to(server) as http:
        message = {**INITIALIZE, "params": {"protocolVersion": 1}}
        response = await http.post(f"/acp{query}", json=message)
        assert response.json()["result"]["_meta"]["sandboxagent.dev"]["agent"] == "mock"


def _request(key: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}
