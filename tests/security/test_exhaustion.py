"""Floods: each is met with a bound and an answer that says so, while others go on being served."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sandbox_agent.http.server import wire
from support.raw import ask, read_answer, request
from support.rpc import DEADLINE, connected, open_client
from support.served import client, problem, served
from support.server import Server, running_server


@contextlib.contextmanager
def sockets(server: Server, number: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30)) for _ in range(number)
        ]


@pytest.mark.promise("P-limit-3")
async def test_more_subscribers_than_allowed_get_429_and_when_to_come_back(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--max-subscribers", "2") as server, connected(server.url) as first:
        second, third = await open_client(first.http), await open_client(first.http)
        async with first.stream(), second.stream():
            refused = await first.http.get(
                "/v1/rpc", headers={"X-ACP-Connection-Id": third.id, "Accept": "text/event-stream"}
            )
            assert refused.status_code == 429
            assert problem(refused) == "too_many"
            assert refused.headers["retry-after"] == "1"
            assert (await first.http.get("/v1/health")).status_code == 200
        await _until_free(third.http)
        async with third.stream():
            pass


async def test_who_follows_all_changes_counts_as_a_subscriber(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--max-subscribers", "1") as server,
        httpx.AsyncClient(base_url=server.url, timeout=DEADLINE) as http,
        http.stream("GET", "/v1/events") as first,
    ):
        assert first.status_code == 200
        refused = await http.get("/v1/events")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "sandbox_agent_streams 1.0" in (await http.get("/v1/metrics")).text


async def _until_free(http: httpx.AsyncClient) -> None:
    streams = ""
    while "sandbox_agent_streams 0.0" not in streams:
        streams = (await http.get("/v1/metrics", timeout=DEADLINE)).text


def test_more_sockets_than_allowed_get_503_and_when_to_come_back(tmp_path: Path) -> None:
    with served(tmp_path, "--max-sockets", "5") as server:
        with sockets(server, 5) as held:
            for connection in held:
                connection.sendall(request("GET", "/v1/health"))
                assert read_answer(connection).status == 200
            refused = ask(server.port, b"")
            assert refused.status == 503
            assert refused.headers["retry-after"] == "1"
            assert b"overloaded" in refused.body
        with client(server) as http:
            for _ in range(100):
                with contextlib.suppress(httpx.TransportError):
                    if http.get("/v1/health").status_code == 200:
                        return
    pytest.fail("the server did not recover")


async def test_more_connections_than_allowed_get_429(tmp_path: Path) -> None:
    config = "max_connections = 3\n"
    async with running_server(tmp_path, config=config) as server, connected(server.url) as rpc:
        await open_client(rpc.http)
        await open_client(rpc.http)
        message = {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"agent": "mock"}}},
        }
        refused = await rpc.http.post("/v1/rpc", json=message, timeout=DEADLINE)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"


@pytest.mark.promise("P-limit-4")
def test_a_head_that_is_too_large_is_refused(open_server: Server) -> None:
    with sockets(open_server, 1) as (connection,):
        connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        with contextlib.suppress(OSError):
            for _ in range(300):
                connection.sendall(b"X-Big: " + b"x" * 1000 + b"\r\n")
        answer = read_answer(connection)
    assert answer.status == 431
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_endless_request_line_is_refused(open_server: Server) -> None:
    with sockets(open_server, 1) as (connection,):
        with contextlib.suppress(OSError):
            for number in range(300):
                connection.sendall(b"x" * 1000 if number else b"GET /")
        assert read_answer(connection).status == 431


def test_garbage_instead_of_http_is_a_problem_not_a_crash(open_server: Server) -> None:
    answer = ask(open_server.port, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with served(tmp_path, config="max_body_bytes = 1000\n") as server, client(server) as http:
        headers = {"Content-Type": "application/json"}
        declared = http.post("/v1/rpc", content=b"x" * 1001, headers=headers)
        chunked = http.post("/v1/rpc", content=iter([b"x" * 600, b"x" * 600]), headers=headers)
    assert (problem(declared), problem(chunked)) == ("too_large", "too_large")


def test_a_json_body_of_a_route_is_limited(open_server: Server) -> None:
    with client(open_server) as http:
        answer = http.post("/v1/fs/move", content=b" " * (2 << 20), headers={"Content-Type": "application/json"})
    assert problem(answer) == "too_large"


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"from":' * 50_000, b"\xff\xfe", b"", b"null", b'{"from":1}'])
def test_a_strange_json_body_is_a_client_error(open_server: Server, body: bytes) -> None:
    with client(open_server) as http:
        answer = http.post("/v1/fs/move", content=body, headers={"Content-Type": "application/json"})
    assert problem(answer) == "invalid_params"


@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.promise("P-limit-4")
def test_a_head_that_is_too_large_is_refused_also_when_it_comes_in_one_piece(open_server: Server, earlier: int) -> None:
    with sockets(open_server, 1) as (connection,):
        for _ in range(earlier):
            connection.sendall(request("GET", "/v1/health"))
            assert read_answer(connection).status == 200
        connection.sendall(request("GET", "/v1/health", *[("X-Big", "x" * 1000)] * 70))
        assert read_answer(connection).status == 431


def test_a_large_body_in_one_piece_is_no_large_head(open_server: Server) -> None:
    body = b'{"from":"' + b"x" * 70_000 + b'"}'
    head = request("POST", "/v1/fs/move", ("Content-Type", "application/json"), ("Content-Length", str(len(body))))
    assert ask(open_server.port, head + body).status == 400


def test_a_head_that_never_ends_is_told_from_one_that_is_complete() -> None:
    connection = wire.BoundedProtocol.__new__(wire.BoundedProtocol)
    connection.head_since = 100.0
    assert not connection.is_stalled(100.0 + wire.HEAD_SECONDS)
    assert connection.is_stalled(100.1 + wire.HEAD_SECONDS)
    connection.head_since = None
    assert not connection.is_stalled(1e9)


async def test_a_prompt_queue_flood_is_refused_as_busy(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        session = await rpc.new_session(str(tmp_path))
        async with rpc.stream() as events:
            for number in range(30):
                prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hang"}]}
                message = {"jsonrpc": "2.0", "id": f"p{number}", "method": "session/prompt", "params": prompt}
                answer = await rpc.post(message, Prefer="respond-async")
                assert answer.status_code == 202
            refused = await events.wait_for(lambda m: m.get("error", {}).get("code") == -32001)
            assert str(refused["id"]).startswith("p")
            detail = (await rpc.http.get(f"/v1/sessions/{session}")).json()
            assert detail["queuedPrompts"] == 16
            assert detail["isBusy"]
            await rpc.notify("session/cancel", {"sessionId": session})


async def test_a_slow_reader_does_not_delay_anybody(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        session = await rpc.new_session(str(tmp_path))
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.sendall(request("GET", "/v1/rpc", ("X-ACP-Connection-Id", rpc.id), ("Accept", "text/event-stream")))
            answer = await rpc.prompt(session, "chunks 20000 200")
            assert answer["result"]["stopReason"] == "end_turn"
            assert (await rpc.http.get("/v1/health")).status_code == 200


async def test_a_killed_client_frees_its_place(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--max-subscribers", "1") as server, connected(server.url) as rpc:
        for _ in range(5):
            opened = False
            while not opened:
                async with rpc.http.stream(
                    "GET",
                    "/v1/rpc",
                    headers={"X-ACP-Connection-Id": rpc.id, "Accept": "text/event-stream", "Last-Event-ID": "0"},
                    timeout=DEADLINE,
                ) as response:
                    opened = response.status_code == 200
