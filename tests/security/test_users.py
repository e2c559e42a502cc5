"""Named tokens: every route and method for every right, who did what, and tokens that end while they are used."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from sandbox_agent.core.methods import EXTENSION_PREFIX, METHODS
from sandbox_agent.core.users import METHOD_RIGHTS, Right, right_for
from sandbox_agent.http.access.tokens import TokenFile
from sandbox_agent.http.asgi.routes import Door
from sandbox_agent.http.doors.opencode.door import METHODS as OPENCODE_METHODS
from sandbox_agent.http.doors.opencode.door import PREFIX as OPENCODE
from sandbox_agent.http.doors.opencode.not_served import NOT_SERVED
from sandbox_agent.http.doors.opencode.table import Handlers, routes
from support.raw import DEADLINE, request, upgrade
from support.rpc import RpcClient, connected, is_permission, option_of_kind
from support.served import TOKEN, client, problem, served
from support.server import Server, running_server
from support.surface import filled_in, route_table

pytestmark = pytest.mark.timeout(240)  # hundreds of requests, one after the other

RIGHTS = {right.word: right for right in Right}
FOR_PROMPT = {
    "GET /v1/agents/{agent}/logs",
    "GET /v1/config/mcp",
    "GET /v1/config/skills",
}
FOR_ADMIN = {
    "POST /v1/agents/{agent}/install",
    "POST /v1/processes/config",
    "PUT /v1/config/mcp",
    "DELETE /v1/config/mcp",
    "PUT /v1/config/skills",
    "DELETE /v1/config/skills",
    "POST /v1/nodes/{id}/drain",
    "POST /v1/nodes/{id}/resume",
}
FOR_ALL_WRITES = {"POST /v1/tickets", "POST /sign-in", "POST /sign-out"}
"""What is no GET and yet for all: getting in and out. The transports look at each message."""
TRANSPORTS = ("/v1/rpc", "/acp", "/v1/acp", "/v1/acp/{server_id}")


def every_route() -> list[tuple[str, str, Right]]:
    """Method, path and what is needed, out of the route table."""
    return [
        (method, entry.path, entry.needs)
        for entry in route_table()
        for method in (entry.methods if isinstance(entry, Door) else (entry.method,))
        if entry.path != "/sign-in"
    ]


def opencode_routes() -> list[tuple[str, str, Right]]:
    class Whatever:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    whatever = Whatever()
    handlers = Handlers(*(cast("Any", whatever) for _ in Handlers.__dataclass_fields__))
    named = [(*route.name.partition(" ")[::2], route.needs) for route in routes(handlers)]
    return [
        (method, OPENCODE + path, needs)
        for method, path, needs in named
        if method in OPENCODE_METHODS and f"{method} {path}" not in NOT_SERVED
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("users")


@pytest.fixture(scope="module")
def tokens(home: Path) -> dict[str, str]:
    file = TokenFile(home / "data")
    return {word: file.add(f"the-{word}", right) for word, right in RIGHTS.items()}


@pytest.fixture(scope="module")
def server(home: Path, tokens: dict[str, str]) -> Iterator[Server]:
    with served(home, "--token", TOKEN) as running:
        yield running


def expected_need(method: str, path: str) -> Right:
    """What the documentation says, in other words than the table."""
    name = f"{method} {path}"
    if name in FOR_ADMIN:
        return Right.ADMIN
    if path.startswith(OPENCODE) and path.endswith("/connect"):
        return Right.PROMPT  # a terminal
    if path in TRANSPORTS or path.startswith(OPENCODE) or name in FOR_ALL_WRITES:
        return Right.READ
    if method != "GET" or name in FOR_PROMPT or path.startswith(("/v1/fs/", "/v1/processes")):
        return Right.PROMPT
    return Right.READ


def test_every_route_has_the_right_that_the_documentation_tells() -> None:
    table = every_route()
    assert {(method, path): needs.word for method, path, needs in table} == {
        (method, path): expected_need(method, path).word for method, path, _ in table
    }


@pytest.mark.promise("P-security-15")
@pytest.mark.parametrize("word", RIGHTS)
def test_every_route_is_open_to_those_with_the_right_and_to_no_others(
    server: Server, tokens: dict[str, str], word: str
) -> None:
    wrong = []
    for method, path, needs in [*every_route(), *opencode_routes()]:
        if path == "/sign-out" or method == "HEAD":
            continue
        status = first_status(server.port, method, filled_in(path), tokens[word])
        is_let_in = status not in (401, 403)
        if is_let_in != (RIGHTS[word] >= needs):
            wrong.append((method, path, needs.word, status))
    assert wrong == []


def first_status(port: int, method: str, path: str, token: str) -> int:
    """What is answered, without waiting for the end: it may be a stream."""
    bearer, length = ("Authorization", f"Bearer {token}"), ("Content-Length", "2")
    terminal = ("X-OpenCode-Ticket", "1")  # without it, a ticket for a terminal is refused to all
    asked = request(method, path, bearer, ("Content-Type", "application/json"), length, terminal)
    if path.endswith("/ws"):
        asked = upgrade(path, bearer)
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as connection:
        connection.sendall(asked + (b"" if path.endswith("/ws") else b"[]"))
        line = b""
        while b"\r\n" not in line:
            piece = connection.recv(4096)
            assert piece, (method, path, line)
            line += piece
    return int(line.split()[1])


def test_every_method_of_ours_is_in_the_table_of_rights(server: Server) -> None:
    async def extensions() -> list[str]:
        async with connected(server.url, token=TOKEN) as owner:
            return list(owner.initialized["_meta"]["sandboxagent.dev"]["extensions"])

    named = {name for name in METHOD_RIGHTS if name.startswith(EXTENSION_PREFIX)}
    assert named == set(asyncio.run(extensions()))
    assert right_for(EXTENSION_PREFIX + "session/new_thing") is Right.ADMIN  # until somebody thinks about it
    standard = {name: right_for(name) for name in METHODS if not name.startswith(EXTENSION_PREFIX)}
    assert {name for name, right in standard.items() if right is Right.READ} == {
        "initialize",
        "session/list",
        "session/load",
        "session/resume",
    }
    assert {name for name, right in standard.items() if right is Right.ADMIN} == {
        "authenticate",
        "logout",
        "session/delete",
    }


@pytest.mark.promise("P-security-15")
@pytest.mark.parametrize("word", ["read", "prompt"])
async def test_every_method_is_refused_to_those_without_its_right(
    server: Server, tokens: dict[str, str], word: str
) -> None:
    async with connected(server.url, token=tokens[word]) as user:
        for method in sorted({*METHODS, *METHOD_RIGHTS, "_vendor/anything", EXTENSION_PREFIX + "no/such"}):
            if right_for(method) <= RIGHTS[word]:
                continue
            answer = await user.request(method, {"sessionId": "none"})
            assert answer["error"]["data"]["type"] == "urn:sandbox-agent:error:forbidden", answer
            assert answer["error"]["data"]["requiredRight"] == right_for(method).word


async def test_a_reader_follows_and_reads_but_is_asked_nothing(server: Server, tokens: dict[str, str]) -> None:
    async with connected(server.url, token=tokens["prompt"]) as writer:
        session = await writer.new_session()
        async with connected(server.url, token=tokens["read"]) as reader, reader.stream() as seen:
            await reader.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
            async with writer.stream() as events:
                turn = asyncio.create_task(writer.prompt(session, "tool ls"))
                asked = await events.wait_for(is_permission)
                refused = await reader.post({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
                assert refused.status_code == 403
                await writer.answer(asked, option_of_kind(asked, "allow_once"))
                assert (await turn)["result"]["stopReason"] == "end_turn"
            ended = await seen.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_ended")
            assert ended["params"]["user"] == "the-prompt"
            assert not any(map(is_permission, seen.messages))
            for refused_call in ("session/prompt", "session/new", "session/set_mode"):
                assert "error" in await reader.request(refused_call, {"sessionId": session, "prompt": []})
            note = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
            assert (await reader.post(note)).status_code == 403


async def test_history_tells_who_prompted_answered_and_cancelled(server: Server, tokens: dict[str, str]) -> None:
    async with (
        connected(server.url, token=tokens["prompt"]) as one,
        connected(server.url, token=tokens["admin"]) as two,
        one.stream() as events,
        two.stream() as others,
    ):
        session = await one.new_session()
        await two.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        turn = asyncio.create_task(one.prompt(session, "tool ls", user="somebody else"))
        await two.answer(await others.wait_for(is_permission), option_of_kind(others.messages[-1], "allow_once"))
        assert "result" in await turn
        hanging = asyncio.create_task(one.prompt(session, "hang"))
        await events.wait_for(lambda m: m.get("method", "").endswith("turn_started"), after=len(events.messages))
        await two.notify("session/cancel", {"sessionId": session})
        assert (await hanging)["result"]["stopReason"] == "cancelled"
        settled = await events.wait_for(lambda m: m.get("method", "").endswith("/settled"))
        assert settled["params"]["user"] == "the-admin"
        told = await _transcript(one, session, "jsonl")
        lines = [json.loads(line)["envelope"] for line in told.splitlines()]
    assert [_signature(line, "params") for line in lines if line.get("method") == "session/prompt"] == [
        "the-prompt"
    ] * 2
    assert [_signature(line, "params") for line in lines if line.get("method") == "session/cancel"] == ["the-admin"]
    answers = [_signature(line, "result") for line in lines if "outcome" in (line.get("result") or {})]
    assert answers == ["the-admin"]


async def test_the_markdown_export_names_users(server: Server, tokens: dict[str, str]) -> None:
    async with connected(server.url, token=tokens["prompt"]) as user:
        session = await user.new_session()
        await user.prompt(session, "hello")
        assert r"**User (the\-prompt)**" in await _transcript(user, session, "markdown")
    async with connected(server.url, token=TOKEN) as owner:
        session = await owner.new_session()
        await owner.prompt(session, "hello")
        assert "**User**" in await _transcript(owner, session, "markdown")


async def _transcript(user: RpcClient, session: str, form: str) -> str:
    answer = await user.http.get(f"/v1/sessions/{session}/transcript", params={"format": form, "agent": "mock"})
    assert answer.status_code == 200, answer.text
    return answer.text


def _signature(line: dict[str, Any], where: str) -> Any:
    return line[where].get("_meta", {}).get("sandboxagent.dev", {}).get("user")


async def test_nobody_uses_the_connection_of_another_user(server: Server, tokens: dict[str, str]) -> None:
    async with connected(server.url, token=tokens["prompt"]) as owner:
        for word in ("read", "admin"):
            headers = {"Authorization": f"Bearer {tokens[word]}"}
            async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False) as http:
                stranger = RpcClient(http, owner.id, {})
                list_sessions = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
                assert (await stranger.post(list_sessions)).status_code == 404
                await stranger.close()
        assert "result" in await owner.request("session/list")


def test_a_ticket_and_a_cookie_have_the_right_of_their_token(server: Server, tokens: dict[str, str]) -> None:
    with client(server, Authorization=f"Bearer {tokens['read']}") as http:
        ticket = http.post("/v1/tickets").json()["ticket"]
    with client(server) as http:
        assert problem(http.get("/v1/fs/entries", params={"ticket": ticket})) == "forbidden"
        signed_in = http.post("/sign-in", data={"token": tokens["read"]}, headers={"Origin": server.url})
        assert signed_in.status_code == 303
        ours = {"Sec-Fetch-Site": "same-origin", "Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
        assert http.get("/v1/sessions", headers=ours).status_code == 200
        assert problem(http.get("/v1/fs/entries", headers=ours)) == "forbidden"


@asynccontextmanager
async def short_lived(server: Server, home: Path, name: str) -> AsyncIterator[tuple[TokenFile, str]]:
    file = TokenFile(home / "data")
    yield file, file.add(name, Right.ADMIN)


@pytest.mark.promise("P-security-16")
async def test_a_revoked_token_ends_streams_waiting_requests_and_cookies(server: Server, home: Path) -> None:
    async with short_lived(server, home, "leaving") as (file, token), connected(server.url, token=token) as user:
        session = await user.new_session()
        signed_in = await user.http.post("/sign-in", data={"token": token}, headers={"Origin": server.url})
        cookie = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0], "Sec-Fetch-Site": "same-origin"}
        async with user.stream() as events:
            hanging = asyncio.create_task(user.post(_prompt(session, "hang")))
            await events.wait_for(lambda m: m.get("method", "").endswith("turn_started"))
            file.revoke("leaving")
            assert (await user.http.get("/v1/health")).status_code == 401
            assert (await user.post(_prompt(session, "hello"))).status_code == 401
            await events.wait_until(lambda seen: seen.is_over)
            assert ": end: the token has expired or was revoked" in events.comments
            assert (await hanging).status_code == 401
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            assert (await http.get("/v1/health", headers=cookie)).status_code == 401
    async with connected(server.url, token=TOKEN) as owner:
        await owner.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        await owner.notify("session/cancel", {"sessionId": session})
        assert "result" in await owner.prompt(session, "hello")  # the session itself goes on


def _prompt(session: str, text: str) -> dict[str, Any]:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": text, "method": "session/prompt", "params": params}


@pytest.mark.promise("P-security-16")
async def test_a_revoked_token_closes_its_websocket_and_its_feed(server: Server, home: Path) -> None:
    async with short_lived(server, home, "guest") as (file, token):
        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            connect(server.url.replace("http", "ws") + "/acp?agent=mock", additional_headers=bearer) as socket_,
            httpx.AsyncClient(base_url=server.url, headers=bearer, trust_env=False, timeout=DEADLINE) as http,
            http.stream("GET", "/v1/events") as feed,
        ):
            initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
            await socket_.send(json.dumps(initialize))
            assert "result" in json.loads(await socket_.recv())
            assert feed.status_code == 200
            file.revoke("guest")
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(socket_.recv(), DEADLINE)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
            assert "revoked" in (await feed.aread()).decode()


async def test_the_first_named_token_is_good_at_once_at_a_server_that_runs(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--token", TOKEN) as server,
        httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=DEADLINE) as http,
    ):
        wrong = {"Authorization": "Bearer sat_wrong"}
        assert (await http.get("/v1/health", headers=wrong)).status_code == 401
        bearer = {"Authorization": f"Bearer {TokenFile(tmp_path / 'data').add('first', Right.READ)}"}
        assert (await http.get("/v1/health", headers=bearer)).status_code == 200
        assert (await http.get("/v1/health", headers=wrong)).status_code == 401


async def test_a_damaged_file_lets_no_named_user_in_and_locks_nobody_else_out(server: Server, home: Path) -> None:
    file = TokenFile(home / "data")
    named, own = ({"Authorization": f"Bearer {held}"} for held in (file.add("ann", Right.READ), TOKEN))
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=DEADLINE) as http:
        assert (await http.get("/v1/health", headers=named)).status_code == 200
        whole = file.path.read_bytes()
        file.path.write_bytes(whole[:-20])
        assert (await http.get("/v1/health", headers=named)).status_code == 401
        assert (await http.get("/v1/health", headers=own)).status_code == 200
        file.path.write_bytes(whole)
        assert (await http.get("/v1/health", headers=named)).status_code == 200
        file.revoke("ann")
        assert (await http.get("/v1/health", headers=named)).status_code == 401
