"""The one edge: whatever fails behind a door or an endpoint is told to its sender, in the form that it reads."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.agents import Catalog
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import ShuttingDown
from sandbox_agent.files import FileService
from sandbox_agent.http.access.auth import Credentials
from sandbox_agent.http.access.origins import HostNames
from sandbox_agent.http.surface import Parts, build_app
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import StoreHealth
from sandbox_agent.store.memory import MemoryStore
from support.doors import initialize_params
from support.hub import Exchange, framed, http_scope, hub_here, posted, socket_scope
from support.limits import APP_LIMITS, file_limits
from support.rpc import prompt_params
from support.store_words import KEEP_ALL
from support.waiting import until

TOLD = "internal error; see the server log"
HOST = (b"host", b"127.0.0.1")


class Bug(Exception):
    pass


class BuggyHub(Hub):
    """Has a bug in the method that `breaks` names."""

    breaks = ""

    async def open_connection(
        self, agent_id: AgentId, params: dict[str, Any], **options: Any
    ) -> tuple[Connection, dict[str, Any]]:
        self._maybe_break("open_connection")
        return await super().open_connection(agent_id, params, **options)

    async def room(self, connection: Connection, frame: Frame) -> None:
        self._maybe_break("room")
        await super().room(connection, frame)

    def has_room(self, connection: Connection, frame: Frame) -> bool:
        self._maybe_break("has_room")
        return super().has_room(connection, frame)

    def dispatch(self, connection: Connection, ticket: int, frame: Frame, raw: bytes) -> None:
        self._maybe_break("dispatch")
        super().dispatch(connection, ticket, frame, raw)

    def _maybe_break(self, name: str) -> None:
        if self.breaks == name:
            raise Bug(name)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[BuggyHub]:
    async with hub_here(tmp_path, BuggyHub) as running:
        assert isinstance(running, BuggyHub)
        yield running


@pytest.fixture
def app(hub: BuggyHub, tmp_path: Path) -> Any:
    parts = Parts(
        hub=hub,
        catalog=Catalog({}),
        files=FileService((), tmp_path, file_limits(), data_dir=None),
        credentials=Credentials(None),
        hosts=HostNames((), is_loopback=True, is_any_name=False),
        limits=APP_LIMITS,
        request_timeout=120.0,
        body_limit=64 << 20,
    )
    return build_app(parts)


def request(key: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


INITIALIZE = request(0, "initialize", initialize_params("mock"))
NEW = request(1, "session/new", {"cwd": "/tmp", "mcpServers": []})


class Client:
    """Posts to one door of an app; remembers the connection, and what the door leaves for requests that repeat."""

    def __init__(self, app: Any, path: str) -> None:
        self._app = app
        self._path = path
        self._headers: dict[str, str] = {}
        self.repeats: list[Any] = []

    async def post(self, message: Any) -> tuple[int, dict[bytes, bytes], Any]:
        query = "agent=mock" if self._path == "/v1/acp/x" else ""
        scope = http_scope("POST", self._path, query, content_type="application/json", **self._headers)
        scope["headers"].append(HOST)
        scope["repeat"] = self.repeats.append
        sent = await Exchange(self._app, scope, posted(message)).done()
        headers = dict(sent[0]["headers"])
        for name in (b"x-acp-connection-id", b"acp-connection-id"):
            if name in headers:
                self._headers = {name.decode().replace("-", "_"): headers[name].decode()}
        body = sent[1]["body"]
        return sent[0]["status"], headers, msgspec.json.decode(body) if body else None


def has_traceback(caplog: pytest.LogCaptureFixture) -> bool:
    return any(record.exc_info is not None and record.exc_info[0] is Bug for record in caplog.records)


@pytest.mark.parametrize("path", ["/v1/rpc", "/acp", "/v1/acp/x"])
async def test_a_bug_while_a_connection_is_opened_is_logged_and_told_as_a_problem(
    app: Any, hub: BuggyHub, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    hub.breaks = "open_connection"
    status, headers, problem = await Client(app, path).post(INITIALIZE)
    assert (status, headers[b"content-type"]) == (500, b"application/problem+json")
    assert (problem["detail"], problem["instance"]) == (TOLD, path)
    assert has_traceback(caplog)


@pytest.mark.parametrize("path", ["/v1/rpc", "/acp"])
async def test_a_bug_in_a_request_is_logged_and_told_as_a_problem(
    app: Any, hub: BuggyHub, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(app, path)
    await client.post(INITIALIZE)
    hub.breaks = "dispatch"
    status, _, problem = await client.post(NEW)
    assert (status, problem["detail"]) == (500, TOLD)
    assert has_traceback(caplog)


async def test_a_bug_in_a_request_to_the_compat_endpoint_is_its_answer(
    app: Any, hub: BuggyHub, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(app, "/v1/acp/x")
    await client.post(INITIALIZE)
    hub.breaks = "dispatch"
    status, _, answer = await client.post(NEW)
    assert (status, answer["id"]) == (200, 1)
    assert (answer["error"]["code"], answer["error"]["message"]) == (-32603, TOLD)
    assert has_traceback(caplog)


@pytest.mark.parametrize("path", ["/v1/rpc", "/acp", "/v1/acp/x"])
async def test_a_bug_in_a_request_that_repeats_is_logged_told_and_counted(
    app: Any, hub: BuggyHub, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(app, path)
    await client.post(INITIALIZE)
    await client.post(NEW)
    hub.breaks = "has_room"
    answers: list[tuple[int, Any]] = []
    client.repeats[-1](msgspec.json.encode(NEW), lambda *a: answers.append((a[0], msgspec.json.decode(a[2]))))
    assert [(status, body["detail"]) for status, body in answers] == [(500, TOLD)]
    assert app.telemetry.in_flight == 0
    assert has_traceback(caplog)


async def test_a_repeated_request_that_is_told_to_come_back_is_told_when(app: Any, hub: BuggyHub) -> None:
    client = Client(app, "/v1/rpc")
    await client.post(INITIALIZE)
    _, _, created = await client.post(NEW)
    answers: list[tuple[int, bytes]] = []
    body = msgspec.json.encode(request(2, "session/prompt", prompt_params(created["result"]["sessionId"], "hang")))
    client.repeats[-1](body, lambda *a: answers.append((a[0], a[1])))
    for connection in hub.clients.values():
        connection.close("server is shutting down", ShuttingDown("the server is shutting down"))
    await until(lambda: bool(answers))
    assert answers[0][0] == 503
    assert b"retry-after: 1\r\n" in answers[0][1]


class Socket:
    """A WebSocket to `/acp` without a server in between."""

    def __init__(self, app: Any) -> None:
        scope = {**socket_scope(), "headers": [HOST]}
        self._exchange = Exchange(app, scope, {"type": "websocket.connect"})
        self.until = self._exchange.until

    def send(self, message: Any) -> None:
        self._exchange.put(framed(message))

    def leave(self) -> None:
        self._exchange.put({"type": "websocket.disconnect", "code": 1000})

    async def last(self) -> Any:
        return (await self._exchange.done())[-1]


async def test_a_bug_in_the_handshake_of_a_websocket_is_its_answer_and_it_may_be_tried_again(
    app: Any, hub: BuggyHub, caplog: pytest.LogCaptureFixture
) -> None:
    socket = Socket(app)
    hub.breaks = "open_connection"
    socket.send(INITIALIZE)
    await socket.until(TOLD)
    assert has_traceback(caplog)
    hub.breaks = ""
    socket.send(INITIALIZE)
    await socket.until("agentCapabilities")
    socket.leave()
    await socket.last()


async def test_a_bug_behind_an_open_websocket_closes_it_with_1011(
    app: Any, hub: BuggyHub, caplog: pytest.LogCaptureFixture
) -> None:
    socket = Socket(app)
    socket.send(INITIALIZE)
    await socket.until("agentCapabilities")
    hub.breaks = "room"
    socket.send(NEW)
    closed = await socket.last()
    assert (closed["type"], closed["code"], closed["reason"]) == ("websocket.close", 1011, TOLD)
    assert has_traceback(caplog)


class BuggyStore(MemoryStore):
    def health(self) -> StoreHealth:
        raise Bug


async def test_a_bug_in_an_endpoint_is_logged_and_told_as_a_problem(
    app: Any, hub: BuggyHub, caplog: pytest.LogCaptureFixture
) -> None:
    hub.store = BuggyStore(retention=KEEP_ALL)
    scope = http_scope("GET", "/v1/health")
    scope["headers"].append(HOST)
    sent = await Exchange(app, scope).done()
    assert sent[0]["status"] == 500
    assert msgspec.json.decode(sent[1]["body"])["detail"] == TOLD
    assert has_traceback(caplog)


async def test_a_peer_that_leaves_is_no_error(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    scope = http_scope("POST", "/v1/rpc", content_type="application/json")
    scope["headers"].append(HOST)
    assert await Exchange(app, scope, {"type": "http.disconnect"}).done() == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_a_repeated_request_is_counted_out_once_however_it_ends(app: Any, leaves_first: bool) -> None:
    responds: list[Any] = []

    def repeat(body: bytes, respond: Any) -> Any:
        responds.append(respond)
        return lambda: None

    leave = app.telemetry.counting(repeat, "/v1/rpc", in_flight=10)(b"", lambda *a: None)
    endings = [leave, lambda: responds[0](200, b"", b"")]
    for ending in endings if leaves_first else reversed(endings):
        ending()
        assert app.telemetry.in_flight == 0
