"""Sockets from which nothing has passed the gate yet: they are closed in time, and keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn

from sandbox_agent.agents import Catalog
from sandbox_agent.files import FileService
from sandbox_agent.http.access.auth import Credentials
from sandbox_agent.http.access.origins import HostNames
from sandbox_agent.http.server.direct import DirectProtocol
from sandbox_agent.http.server.websocket import bounded_websocket
from sandbox_agent.http.server.wire import Sockets, bounded, close_stalled
from sandbox_agent.http.surface import Parts, build_app
from support.hub import hub_here
from support.limits import APP_LIMITS, file_limits
from support.raw import read_answer, request, upgrade
from support.raw_http import post_request, raw_client
from support.served import TOKEN, served
from support.server import running_server
from support.waiting import until

PATIENCE = 0.5
BEARER = ("Authorization", f"Bearer {TOKEN}")
SIGN_IN = post_request(b"", "Content-Type: application/x-www-form-urlencoded", path="/sign-in", length=100)
NO_TOKEN = post_request(b"", path="/v1/rpc", length=100)
WRONG = request("GET", "/v1/health", ("Authorization", "Bearer wrong"))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[uvicorn.Server]:
    """A server with a token, in this process, that bears with strangers for a moment only."""
    sockets = Sockets(100, patience=PATIENCE)
    async with hub_here(tmp_path) as hub:
        parts = Parts(
            hub=hub,
            catalog=Catalog({}),
            files=FileService((), tmp_path, file_limits(), data_dir=None),
            credentials=Credentials(TOKEN),
            hosts=HostNames((), is_loopback=True, is_any_name=False),
            limits=APP_LIMITS,
            request_timeout=120.0,
            body_limit=64 << 20,
        )
        http, ws = bounded(sockets, DirectProtocol), bounded_websocket(sockets)
        server = uvicorn.Server(
            uvicorn.Config(build_app(parts), http=http, ws=ws, port=0, lifespan="off", log_config=None)
        )
        running = asyncio.create_task(server.serve())
        sweeping = asyncio.create_task(close_stalled(server.server_state, sockets, every=0.05))
        await until(lambda: server.started)
        yield server
        sweeping.cancel()
        server.should_exit = True
        async with asyncio.timeout(30):
            await running


def port_of(server: uvicorn.Server) -> int:
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    return port_of(server)


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost:", SIGN_IN, NO_TOKEN, WRONG],
    ids=["nothing", "half a head", "a sign-in without its body", "a refused request without its body", "a wrong token"],
)
@pytest.mark.promise("P-limit-5")
async def test_a_stranger_is_closed_in_time_whatever_it_leaves_undone(port: int, sent: bytes) -> None:
    async with raw_client(port) as client:
        await client.send(sent)
        async with asyncio.timeout(PATIENCE + 3):
            await client.read_end()


async def test_a_stranger_that_sends_its_body_byte_by_byte_is_closed_in_time(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(NO_TOKEN)
    async with asyncio.timeout(PATIENCE + 3):
        with contextlib.suppress(OSError):
            while not reader.at_eof():
                writer.write(b"x")
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1000), 0.05)
    writer.close()


async def test_a_stranger_that_does_not_read_is_closed_in_time(server: uvicorn.Server) -> None:
    with socket.create_connection(("127.0.0.1", port_of(server))) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        page = request("GET", "/ui/", ("Accept", "text/html")) * 1000
        async with asyncio.timeout(PATIENCE + 3):
            await until(lambda: bool(server.server_state.connections))
            while server.server_state.connections:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    deaf.send(page)
                await asyncio.sleep(0.02)


async def test_who_has_passed_the_gate_may_take_its_time(port: int) -> None:
    async with raw_client(port) as client:
        await client.send(request("GET", "/v1/health", BEARER))
        assert (await client.read_reply()).status == 200
        late = post_request(b"", ": ".join(BEARER), "Content-Type: application/json", path="/v1/fs/move", length=2)
        await client.send(late)
        await asyncio.sleep(PATIENCE + 0.5)  # past the time of strangers, which this is not
        await client.send(b"{}")
        assert (await client.read_reply()).status == 400


@pytest.mark.promise("P-limit-5")
def test_strangers_that_hold_every_socket_keep_nobody_out(tmp_path: Path) -> None:
    with served(tmp_path, "--max-sockets", "5", "--token", TOKEN) as server, contextlib.ExitStack() as stack:

        def opened(content: bytes) -> socket.socket:
            made = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            made.sendall(content)
            return made

        trusted = opened(request("GET", "/v1/health", BEARER))
        assert read_answer(trusted).status == 200
        for content in (SIGN_IN, b"", NO_TOKEN, b"GET /", SIGN_IN, b"", b"GET /"):
            opened(content)
        newcomer = opened(request("GET", "/v1/health", BEARER))
        assert read_answer(newcomer).status == 200
        trusted.sendall(request("GET", "/v1/health", BEARER))
        assert read_answer(trusted).status == 200, "it keeps its socket"


class Transport(asyncio.Transport):
    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def aborted(*transports: Transport) -> list[bool]:
    return [transport.is_aborted for transport in transports]


def test_the_oldest_stranger_makes_room_and_nobody_else() -> None:
    sockets = Sockets(limit=3, patience=20)
    known, old, young = Transport(), Transport(), Transport()
    for now, transport in enumerate((known, old, young)):
        sockets.add(transport, now)
    sockets.forget(known)
    assert sockets.make_room()
    assert aborted(known, old, young) == [False, True, False]
    sockets.close_overdue(22.0)
    assert aborted(known, young) == [False, False]
    sockets.close_overdue(22.1)
    assert aborted(known, young) == [False, True]
    assert not sockets.make_room()


@pytest.mark.parametrize(
    "header", [("Content-Length", "5"), ("Transfer-Encoding", "chunked"), *[("X-Long", "x" * 9000)]], ids=lambda h: h[0]
)
async def test_an_upgrade_that_cannot_be_one_is_refused_at_once_and_the_server_stops_in_good_order(
    tmp_path: Path, header: tuple[str, str]
) -> None:
    async with (
        running_server(tmp_path) as server,
        raw_client(server.port) as client,
        raw_client(server.port) as other,
    ):
        await client.send(upgrade("/acp", header))
        assert (await client.read_reply()).status == 400
        await other.send(upgrade("/acp", header) + b"12345")
        assert (await other.read_reply()).status == 400
        assert await server.stop() == 0
