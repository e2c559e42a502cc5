"""The app without a socket: doors in the table, the short way through the gate, errors of doors, zero-copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core.users import User
from sandbox_agent.errors import Conflict
from sandbox_agent.files import FileService
from sandbox_agent.http.access.attendance import Attendance
from sandbox_agent.http.access.auth import Credentials
from sandbox_agent.http.access.gate import Gate
from sandbox_agent.http.access.origins import Cors, HostNames
from sandbox_agent.http.access.tokens import NamedTokens
from sandbox_agent.http.api.download import send_file
from sandbox_agent.http.app import App
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Receive, Scope, Send
from sandbox_agent.http.asgi.routes import Door
from sandbox_agent.http.asgi.telemetry import Telemetry
from support.limits import APP_LIMITS, file_limits

HOST = (b"host", b"127.0.0.1")


def gate(token: str | None = None, *origins: str) -> Gate:
    return Gate(Credentials(token), HostNames((), is_loopback=True, is_any_name=False), Cors(origins))


def scope_of(kind: str, path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> Scope:
    scope: dict[str, Any] = {"type": kind, "path": path, "raw_path": path.encode(), "query_string": b""}
    more: dict[str, Any] = {"method": method} if kind == "http" else {"subprotocols": []}
    return {**scope, **more, "headers": [HOST, *headers]}


async def answered(app: App, scope: Scope) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    await app(scope, receive, send)
    return sent


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    body = msgspec.json.encode(scope.get("path_params", {}))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise Conflict("not like this")


def app_with(*doors: Door, token: str | None = None) -> App:
    async def nowhere(*_: object) -> bool:
        return False

    async def nobody(user: User) -> None:
        raise AssertionError(user)

    attendance = Attendance(NamedTokens(None), nobody)
    return App(doors, gate(token), Telemetry(), APP_LIMITS, attendance, nowhere)


@pytest.mark.parametrize(
    ("template", "path", "params"),
    [
        ("/x/{id}", "/x/one", {"id": "one"}),
        ("/x/{rest:path}", "/x/one/two", {"rest": "one/two"}),
        ("/x/{rest:path}", "/x/", {"rest": ""}),
        ("/{a}/x/{b}", "/1/x/2", {"a": "1", "b": "2"}),
        ("/x/{id}", "/x/a%2Fb", {"id": "a/b"}),
    ],
)
async def test_a_door_gets_what_the_braces_of_its_path_stand_for(
    template: str, path: str, params: dict[str, str]
) -> None:
    sent = await answered(app_with(Door(template, ("GET",), echo)), scope_of("http", path))
    assert msgspec.json.decode(sent[1]["body"]) == params


@pytest.mark.parametrize("path", ["/x", "/x/", "/x/a/b", "/y/a"])
async def test_a_template_takes_no_more_and_no_less_than_one_segment(path: str) -> None:
    sent = await answered(app_with(Door("/x/{id}", ("GET",), echo)), scope_of("http", path))
    assert sent[0]["status"] == 404


async def test_a_websocket_reaches_only_a_door_that_serves_it() -> None:
    open_door, shut_door = Door("/ws", (), echo, serves_websocket=True), Door("/no", ("GET",), echo)
    app = app_with(open_door, shut_door, token="t")
    good = (b"authorization", b"Bearer t")
    assert (await answered(app, scope_of("websocket", "/ws", good)))[0]["type"] == "websocket.accept"
    refused = await answered(app, scope_of("websocket", "/ws"))
    assert (refused[0]["type"], refused[0]["status"]) == ("websocket.http.response.start", 401)
    assert (await answered(app, scope_of("websocket", "/no", good)))[0]["status"] == 404


async def test_an_error_that_leaves_a_door_becomes_a_problem_and_is_counted() -> None:
    app = app_with(Door("/x", ("GET",), failing))
    sent = await answered(app, scope_of("http", "/x"))
    assert sent[0]["status"] == 409
    assert msgspec.json.decode(sent[1]["body"])["detail"] == "not like this"
    assert app.telemetry.requests == {("GET", "/x", 409): 1}
    assert (app.telemetry.in_flight, app.telemetry.subscribers) == (0, 0)


headers = st.lists(
    st.tuples(
        st.sampled_from(
            [b"host", b"origin", b"authorization", b"cookie", b"sec-fetch-site", b"sec-fetch-mode", b"accept"]
        ),
        st.sampled_from(
            [b"127.0.0.1", b"evil.com", b"Bearer t", b"bearer t", b"Bearer x", b"", b"http://127.0.0.1",
             b"https://listed.example", b"null", b"cross-site", b"same-origin", b"navigate", b"text/html"]
        ),
    ),
    max_size=5,
)  # fmt: skip


@given(headers, st.booleans(), st.sampled_from(["GET", "POST", "OPTIONS"]))
def test_the_short_way_through_the_gate_admits_nobody_whom_the_long_way_refuses(
    given_headers: list[tuple[bytes, bytes]],
    has_token: bool,
    method: str,
) -> None:
    guarded = gate("t" if has_token else None, "https://listed.example")
    scope = scope_of("http", "/v1/rpc", method=method)
    scope["headers"] = given_headers
    if guarded.admits(scope):
        admission = guarded.judge(scope, None)
        assert admission.response is None
        assert admission.headers == []


async def test_a_whole_file_is_handed_to_a_server_that_can_send_it_without_copying(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    files = FileService((), tmp_path, file_limits(), data_dir=None)
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.pathsend":
            message = {**message, "content": Path(message["path"]).read_bytes()}
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    scope = {**scope_of("http", "/v1/fs/file"), "extensions": {"http.response.pathsend": {}}}
    async with await files.open_for_read("file") as file:
        await send_file(Exchange(scope, receive, send), file)
    await files.close()
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.pathsend"]
    assert sent[1]["content"] == b"content"
    assert (b"content-length", b"7") in sent[0]["headers"]
