"""The WebSocket of `/acp`: who may come in, what may be sent, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from support.doors import SocketDoorClient, client_at, initialize_params
from support.raw import upgrade
from support.rpc import DEADLINE, Message
from support.server import Server, running_server

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params("mock")}


def address(server: Server, query: str = "") -> str:
    return server.url.replace("http://", "ws://") + "/acp" + query


@asynccontextmanager
async def socket_to(server: Server, query: str = "", **options: Any) -> AsyncIterator[ClientConnection]:
    async with connect(address(server, query), proxy=None, max_size=None, **options) as socket:
        yield socket


async def received(socket: ClientConnection) -> Message:
    async with asyncio.timeout(DEADLINE):
        message: Message = msgspec.json.decode(await socket.recv())
        return message


async def ending(socket: ClientConnection) -> tuple[int | None, str | None]:
    async with asyncio.timeout(DEADLINE):
        await socket.wait_closed()
    return socket.close_code, socket.close_reason


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "server", "--token", "secret", "--log-level", "info") as server:
        yield server


async def test_upgrade_answers_with_the_connection_id(server: Server) -> None:
    async with socket_to(server) as socket:
        assert socket.response is not None
        connection_id = socket.response.headers["Acp-Connection-Id"]
        await socket.send(msgspec.json.encode(INITIALIZE).decode())
        answer = await received(socket)
        assert answer["id"] == 0
        assert answer["result"]["_meta"]["sandboxagent.dev"]["connectionId"] == connection_id


async def test_binary_frames_and_trailing_newlines_are_taken(server: Server) -> None:
    async with socket_to(server) as socket:
        await socket.send(msgspec.json.encode(INITIALIZE) + b"\n")
        assert "result" in await received(socket)
        await socket.send('{"jsonrpc":"2.0",\n "id":"x", "method":"session/list","params":{}}\r\n')
        assert (await received(socket))["id"] == "x"


@pytest.mark.parametrize(
    ("query", "meta"), [("?agent=mock", {}), ("", {"sandboxagent.dev": {"agent": "mock"}}), ("", {})]
)
async def test_agent_comes_from_query_meta_or_default(server: Server, query: str, meta: dict[str, Any]) -> None:
    async with socket_to(server, query) as socket:
        message = {**INITIALIZE, "params": {"protocolVersion": 1, "_meta": meta}}
        await socket.send(msgspec.json.encode(message))
        assert (await received(socket))["result"]["_meta"]["sandboxagent.dev"]["agent"] == "mock"


async def test_failed_handshake_is_answered_and_can_be_tried_again(server: Server) -> None:
    async with socket_to(server) as socket:
        await socket.send('{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}')
        assert "initialize" in (await received(socket))["error"]["message"]
        await socket.send(msgspec.json.encode({**INITIALIZE, "params": initialize_params("nobody")}))
        assert "nobody" in (await received(socket))["error"]["message"]
        await socket.send(msgspec.json.encode(INITIALIZE))
        assert "result" in await received(socket)


@pytest.mark.parametrize("message", ["{", "[]", "null", '{"jsonrpc":"2.0","id":{},"method":"x"}'])
async def test_malformed_message_closes_with_1007_and_the_reason(server: Server, message: str) -> None:
    async with client_at("acp-ws", server.url) as other, socket_to(server) as socket:
        session = await other.new_session()
        await socket.send(message)
        code, reason = await ending(socket)
        assert code == 1007
        assert reason
        assert (await other.prompt(session, "undisturbed"))["result"]["stopReason"] == "end_turn"


async def test_oversize_message_closes_with_1009_and_the_reason(tmp_path: Path) -> None:
    config = "max_body_bytes = 100000\n"
    async with (
        running_server(tmp_path / "server", config=config) as server,
        client_at("acp-ws", server.url) as other,
        socket_to(server) as socket,
    ):
        session = await other.new_session()
        await socket.send(msgspec.json.encode({**INITIALIZE, "filling": "x" * 200_000}))
        code, reason = await ending(socket)
        assert code == 1009
        assert reason
        assert (await other.prompt(session, "undisturbed"))["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize("query", ["", "?access_token=wrong"])
async def test_upgrade_without_a_valid_token_is_refused_before_it_happens(guarded: Server, query: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket_to(guarded, query):
            pass
    assert refused.value.response.status_code == 401
    assert b"a valid bearer token is required" in (refused.value.response.body or b"")


async def test_token_comes_as_header_query_or_subprotocol_and_is_not_logged(guarded: Server) -> None:
    ways: list[tuple[str, dict[str, Any]]] = [
        ("", {"additional_headers": {"Authorization": "Bearer secret"}}),
        ("?access_token=secret", {}),
        ("", {"subprotocols": [Subprotocol("acp"), Subprotocol("bearer.secret")]}),
    ]
    for query, options in ways:
        async with socket_to(guarded, query, **options) as socket:
            await socket.send(msgspec.json.encode(INITIALIZE))
            assert "result" in await received(socket)
            assert socket.subprotocol == ("acp" if "subprotocols" in options else None)
    assert "secret" not in guarded.log_text()


async def test_unknown_connection_and_strange_event_id_are_refused(server: Server) -> None:
    async with socket_to(server, "?connection_id=conn_nobody") as socket:
        assert (await ending(socket))[0] == 4404
    async with client_at("acp-ws", server.url) as client:
        for strange in ("-1", "99999", "x"):
            query = f"?connection_id={client.connection_id}&last_event_id={strange}"
            async with socket_to(server, query) as socket:
                assert (await ending(socket))[0] == 4400
        assert await client.new_session()


async def test_second_socket_takes_the_connection_over(server: Server) -> None:
    async with client_at("acp-ws", server.url) as client:
        session = await client.new_session()
        old = client.socket
        await client.reattach()
        assert (await ending(old))[0] == 4409
        assert (await client.prompt(session, "on the new socket"))["result"]["stopReason"] == "end_turn"


async def test_goodbye_closes_the_connection_and_leaves_the_session(server: Server) -> None:
    async with client_at("acp-ws", server.url) as client:
        session = await client.new_session()
        await client.close()
        query = f"?connection_id={client.connection_id}"
        async with asyncio.timeout(DEADLINE):
            while True:
                async with socket_to(server, query) as socket:
                    try:
                        await asyncio.wait_for(socket.recv(), 0.2)
                    except websockets.ConnectionClosed:
                        if socket.close_code == 4404:
                            break
                    except TimeoutError:
                        pass
    async with client_at("acp-ws", server.url) as other:
        await other.load(session)


async def test_shutdown_closes_every_socket_with_a_reason(tmp_path: Path) -> None:
    async with running_server(tmp_path / "server") as server:
        client = SocketDoorClient(server.url)
        await client.open()
        await server.stop()
        assert await ending(client.socket) == (1001, "server is shutting down")
        await client.leave()


async def test_upgrade_refused_for_its_origin_is_no_error_of_the_server(guarded: Server) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket_to(guarded, additional_headers={"Authorization": "Bearer secret"}, origin=Origin("http://x")):
            pass
    assert refused.value.response.status_code == 403
    async with socket_to(guarded, additional_headers={"Authorization": "Bearer secret"}) as socket:
        await socket.send(msgspec.json.encode(INITIALIZE))
        await received(socket)
    assert "ERROR" not in guarded.log_text()


async def test_pongs_that_nobody_reads_cost_bounded_memory_and_the_newest_ping_is_answered(own_server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", own_server.port, limit=64 << 20)
    with contextlib.closing(writer):
        writer.write(upgrade("/acp"))
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        before = resident(own_server.pid)
        flood = ping(b"x" * 125) * 8000
        for _ in range(60):
            writer.write(flood)
            await writer.drain()
        writer.write(ping(b"the last"))
        await writer.drain()
        assert resident(own_server.pid) - before < 16 << 20, "60 MB of pings were sent"
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(DEADLINE):
            await reader.readuntil(b"\x8a\x08the last")


def ping(payload: bytes) -> bytes:
    """A ping, masked with zeros."""
    return bytes([0x89, 0x80 | len(payload), 0, 0, 0, 0]) + payload


@pytest.mark.promise("P-limit-7")
async def test_client_that_never_reads_costs_bounded_memory(own_server: Server) -> None:
    async with client_at("acp-ws", own_server.url) as deaf, client_at("rpc", own_server.url) as other:
        session = await deaf.new_session()
        await other.load(session)
        await deaf.stop_reading()
        await other.prompt(session, "chunks 1000 1000")
        before = resident(own_server.pid)
        assert (await other.prompt(session, "chunks 20000 4000"))["result"]["stopReason"] == "end_turn"
        assert resident(own_server.pid) - before < 60 << 20, "80 MB were sent"
        deaf.socket.transport.resume_reading()
        await deaf.events.wait_until(lambda e: len(e.updates("agent_message_chunk")) >= 21000, deadline=50)


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024
