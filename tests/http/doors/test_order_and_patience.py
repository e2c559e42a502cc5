"""What can be seen exactly only without sockets in between: order, patience, grace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.http.doors.acp import AcpDoor
from sandbox_agent.http.doors.acp_websocket import AcpSocketDoor
from sandbox_agent.http.doors.compat import CompatDoor
from sandbox_agent.hub.hub import Hub
from support.doors import initialize_params
from support.hub import Exchange, framed, http_scope, hub_here, posted, socket_scope
from support.rpc import prompt_params
from support.waiting import until

CONNECT = {"type": "websocket.connect"}
GONE = {"type": "websocket.disconnect", "code": 1006}
GOODBYE = {"type": "websocket.disconnect", "code": 1000}


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with hub_here(tmp_path) as running:
        yield running


def request(key: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


INITIALIZE = request(0, "initialize", initialize_params("mock"))


async def test_compat_stream_is_written_before_the_post_is_answered(hub: Hub) -> None:
    door = CompatDoor(hub, request_timeout=30, body_limit=1 << 20)
    log: list[tuple[str, Any]] = []

    async def post(message: Any, query: str = "") -> Any:
        scope = http_scope("POST", "/v1/acp/x", query, content_type="application/json")
        sent = await Exchange(door, scope, posted(message), log=log).done()
        return msgspec.json.decode(sent[1]["body"])

    stream = Exchange(door, http_scope("GET", "/v1/acp/x"), log=log)
    await stream.until("open")
    await post(INITIALIZE, "agent=mock")
    session = (await post(request(1, "session/new", {"cwd": "/tmp", "mcpServers": []})))["result"]["sessionId"]
    for key in range(2, 6):
        await post(request(key, "session/prompt", prompt_params(session, "chunks 500 50")))
        bodies = [(method, message.get("body", b"")) for method, message in log]
        answered = next(i for i, (method, body) in enumerate(bodies) if method == "POST" and b'"id":%d,' % key in body)
        written = b"".join(body for method, body in bodies[:answered] if method == "GET")
        assert written.count(b'"500 ') == key - 1
    stream.put({"type": "http.disconnect"})
    await stream.done()


async def test_compat_answer_overtakes_a_reader_that_takes_nothing(hub: Hub) -> None:
    door = CompatDoor(hub, request_timeout=30, body_limit=1 << 20, patience=0.05)
    stream = Exchange(door, http_scope("GET", "/v1/acp/x"))
    await stream.until("open")
    stream.gate.clear()
    scope = http_scope("POST", "/v1/acp/x", "agent=mock", content_type="application/json")
    sent = await Exchange(door, scope, posted(INITIALIZE)).done()
    assert sent[0]["status"] == 200
    stream.put({"type": "http.disconnect"})
    await stream.done()


async def opened_for_repeats(door: CompatDoor) -> tuple[Any, str]:
    """What the door leaves behind for requests that repeat, and a session."""
    repeats: list[Any] = []

    async def post(message: Any, query: str = "") -> Any:
        scope = http_scope("POST", "/v1/acp/x", query, content_type="application/json")
        scope["repeat"] = repeats.append
        return msgspec.json.decode((await Exchange(door, scope, posted(message)).done())[1]["body"])

    await post(INITIALIZE, "agent=mock")
    session = (await post(request(1, "session/new", {"cwd": "/tmp", "mcpServers": []})))["result"]["sessionId"]
    return repeats[-1], session


async def test_compat_stream_is_written_before_a_repeated_post_is_answered(hub: Hub) -> None:
    door = CompatDoor(hub, request_timeout=30, body_limit=1 << 20)
    repeat, session = await opened_for_repeats(door)
    log: list[tuple[str, Any]] = []
    stream = Exchange(door, http_scope("GET", "/v1/acp/x"), log=log)
    await stream.until("open")
    answers: list[tuple[int, int, int]] = []

    def respond(status: int, headers: bytes, content: bytes) -> None:
        written = b"".join(message.get("body", b"") for _, message in log)
        answers.append((status, msgspec.json.decode(content)["id"], written.count(b'"500 ')))

    for key in range(2, 6):
        body = msgspec.json.encode(request(key, "session/prompt", prompt_params(session, "chunks 500 50")))
        assert repeat(body, respond) is not None
        await until(lambda: len(answers) > 0)
        assert answers.pop() == (200, key, key - 1)
    stream.put({"type": "http.disconnect"})
    await stream.done()


async def test_repeated_compat_answer_overtakes_a_reader_that_takes_nothing(hub: Hub) -> None:
    door = CompatDoor(hub, request_timeout=30, body_limit=1 << 20, patience=0.05)
    repeat, session = await opened_for_repeats(door)
    stream = Exchange(door, http_scope("GET", "/v1/acp/x"))
    await stream.until("open")
    stream.gate.clear()
    answers: list[int] = []
    body = msgspec.json.encode(request(9, "session/prompt", prompt_params(session, "chunks 50 50")))
    repeat(body, lambda status, headers, content: answers.append(status))
    await until(lambda: answers == [200])
    stream.put({"type": "http.disconnect"})
    await stream.done()


async def test_repeated_compat_post_that_fails_is_an_answer_and_what_is_no_request_is_left_alone(hub: Hub) -> None:
    door = CompatDoor(hub, request_timeout=30, body_limit=1 << 20)
    repeat, session = await opened_for_repeats(door)
    answers: list[tuple[int, Any]] = []

    def respond(status: int, headers: bytes, content: bytes) -> None:
        answers.append((status, msgspec.json.decode(content)))

    repeat(msgspec.json.encode(request(2, "session/prompt", {"sessionId": "nobody", "prompt": []})), respond)
    await until(lambda: bool(answers))
    assert answers[0][0] == 200
    assert answers[0][1]["error"]["data"]["type"].startswith("urn:sandbox-agent:error:")
    for left in (b"{", b'{"jsonrpc":"2.0","method":"session/cancel"}', b'{"jsonrpc":"2.0","id":{},"method":"x"}'):
        assert repeat(left, respond) is None
    await hub.close_connection(next(iter(hub.clients)))
    assert repeat(msgspec.json.encode(request(3, "_x", {"sessionId": session})), respond) is None
    assert len(answers) == 1


async def test_repeated_acp_post_is_accepted_and_answered_on_the_stream_unless_it_contradicts_its_head(
    hub: Hub,
) -> None:
    door = AcpDoor(hub, default_agent="mock", body_limit=1 << 20)
    repeats: list[Any] = []
    statuses: list[int] = []
    sent = await Exchange(door, http_scope("POST", "/acp", content_type="application/json"), posted(INITIALIZE)).done()
    connection = dict(sent[0]["headers"])[b"acp-connection-id"].decode()

    async def post(message: Any, **headers: str) -> None:
        scope = http_scope("POST", "/acp", content_type="application/json", acp_connection_id=connection, **headers)
        scope["repeat"] = repeats.append
        assert (await Exchange(door, scope, posted(message)).done())[0]["status"] == 202

    new = request(1, "session/new", {"cwd": "/tmp", "mcpServers": []})
    await post(new)
    stream = Exchange(door, http_scope("GET", "/acp", acp_connection_id=connection))
    await stream.until("sessionId")
    session = str(stream.sent).partition('"sessionId":"')[2].partition('"')[0]
    await post(request(2, "_x", {"sessionId": session}), acp_session_id=session)

    def respond(status: int, headers: bytes, content: bytes) -> None:
        statuses.append(status)

    assert repeats[-1](msgspec.json.encode(request(3, "_y", {"sessionId": "another"})), respond) is None
    assert repeats[-1](b"[]", respond) is None
    assert statuses == []
    assert repeats[0](msgspec.json.encode({**new, "id": "again"}), respond) is not None
    assert statuses == [202]
    await stream.until('"id":"again"')
    stream.put({"type": "http.disconnect"})
    await stream.done()


async def test_early_stream_that_nobody_needed_ends_after_a_while(hub: Hub) -> None:
    door = CompatDoor(hub, request_timeout=30, body_limit=1 << 20, early_wait=0.1)
    sent = await Exchange(door, http_scope("GET", "/v1/acp/x")).done()
    assert b"timed out waiting for the first message" in sent[-1]["body"]
    assert not sent[-1].get("more_body")


async def test_socket_that_takes_nothing_is_given_up_and_its_connection_too(hub: Hub) -> None:
    door = AcpSocketDoor(hub, default_agent=None, body_limit=1 << 20, stall=0.1, grace=0.1)
    socket = Exchange(door, socket_scope(), CONNECT, framed(INITIALIZE))
    await socket.until("protocolVersion")
    socket.gate.clear()
    socket.put(framed(request(1, "session/list", {})))
    await socket.done()
    await until(lambda: not hub.clients)


async def test_connection_of_a_broken_socket_is_kept_for_its_grace(hub: Hub) -> None:
    door = AcpSocketDoor(hub, default_agent=None, body_limit=1 << 20, grace=60)
    socket = Exchange(door, socket_scope(), CONNECT, framed(INITIALIZE))
    await socket.until("protocolVersion")
    socket.put(GONE)
    await socket.done()
    [connection_id] = hub.clients
    back = Exchange(door, socket_scope(f"connection_id={connection_id}&last_event_id=1"), CONNECT)
    back.put(framed(request(1, "session/list", {})))
    await back.until("sessions")
    assert "protocolVersion" not in str(back.sent), "it goes on after the first frame"
    back.put(GOODBYE)
    await back.done()
    await until(lambda: not hub.clients)


async def test_connection_whose_grace_is_over_is_closed(hub: Hub) -> None:
    door = AcpSocketDoor(hub, default_agent=None, body_limit=1 << 20, grace=0.05)
    socket = Exchange(door, socket_scope(), CONNECT, framed(INITIALIZE))
    await socket.until("protocolVersion")
    socket.put(GONE)
    await socket.done()
    await until(lambda: not hub.clients)
