"""Strange input at `/opencode`: who may come in, ids that are none, bodies that are none, readers that do not read."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.history.opencode.ids import Ids, session_id
from support.opencode import OpenCode, following, opencode
from support.raw_http import raw_client
from support.served import TOKEN, client, served
from support.server import Server, running_server

BASIC = base64.b64encode(f"opencode:{TOKEN}".encode()).decode()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    origin = ("--cors-allow-origin", "https://app.example")
    with served(tmp_path_factory.mktemp("guarded"), "--token", TOKEN, *origin) as running:
        yield running


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {"Authorization": f"Basic {BASIC}"}),
        ("", {"Authorization": f"basic {BASIC}"}),
        ("", {"Authorization": f"Bearer {TOKEN}"}),
        (f"?auth_token={TOKEN}", {}),
        (f"?auth_token={BASIC}", {}),
    ],
)
def test_the_token_is_taken_in_every_spelling(guarded: Server, query: str, headers: dict[str, str]) -> None:
    with client(guarded, **headers) as http:
        assert http.get(f"/opencode/config{query}").status_code == 200
        assert http.get(f"/opencode/api/health{query}").status_code == 200


def pair(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {}),
        ("", {"Authorization": f"Basic {pair('opencode', 'wrong')}"}),
        ("", {"Authorization": f"Basic {pair('root', TOKEN)}"}),
        ("", {"Authorization": f"Basic {TOKEN}"}),
        ("", {"Authorization": "Basic ???"}),
        ("", {"Authorization": "Bearer wrong"}),
        ("", {"Authorization": "Digest x"}),
        ("?auth_token=wrong", {}),
        (f"?auth_token={TOKEN}&auth_token={TOKEN}", {}),
        (f"?token={TOKEN}", {}),
        (f"?auth_token={TOKEN}", {"Authorization": "Bearer wrong"}),
    ],
)
def test_everybody_else_is_refused_as_opencode_refuses(guarded: Server, query: str, headers: dict[str, str]) -> None:
    with client(guarded, **headers) as http:
        for method, path in [("GET", "/config"), ("GET", "/event"), ("POST", "/session"), ("GET", "/nowhere")]:
            refused = http.request(method, f"/opencode{path}{query}")
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Basic")
            assert refused.json()["_tag"] == "UnauthorizedError"


def test_basic_and_auth_token_open_no_other_endpoint(guarded: Server) -> None:
    with client(guarded) as http:
        assert http.get("/v1/sessions", headers={"Authorization": f"Basic {BASIC}"}).status_code == 401
        assert http.get(f"/v1/sessions?auth_token={TOKEN}").status_code == 401


def test_a_page_of_a_listed_origin_may_use_it_and_others_not(guarded: Server) -> None:
    wanted = {"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "x-opencode-directory"}
    with client(guarded) as http:
        asked = http.options("/opencode/session", headers={"Origin": "https://app.example", **wanted})
        assert asked.status_code == 204
        assert "PATCH" in asked.headers["access-control-allow-methods"]
        assert "x-opencode-directory" in asked.headers["access-control-allow-headers"].lower()
        ours = {"Origin": "https://app.example", "Authorization": f"Basic {BASIC}"}
        answer = http.get("/opencode/config", headers=ours)
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        evil = {"Origin": "https://evil.example", "Authorization": f"Basic {BASIC}"}
        assert http.get("/opencode/config", headers=evil).status_code == 403


def sessions_that_are_none() -> list[str]:
    unknown = session_id(SessionKey(AgentId("mock"), SessionId("mock-unknown")), 1_700_000_000.0)
    return [
        "ses_",
        "ses_0",
        "nonsense",
        "msg_0123456789ab00000000000000",
        unknown,
        "ses_" + "z" * 3000,
        "%00",
        "%2F..%2F",
    ]


async def test_ids_of_sessions_that_do_not_exist(client: OpenCode) -> None:
    real = await client.new_session()
    later = real[:4] + ("0" if real[4] != "0" else "1") + real[5:]
    for given in [*sessions_that_are_none(), later]:
        for method, path, body in [
            ("GET", "", None),
            ("PATCH", "", {"title": "x"}),
            ("DELETE", "", None),
            ("GET", "/message", None),
            ("GET", "/todo", None),
            ("GET", "/diff", None),
            ("GET", "/children", None),
            ("POST", "/message", {"parts": [{"type": "text", "text": "x"}]}),
            ("POST", "/prompt_async", {"parts": [{"type": "text", "text": "x"}]}),
            ("POST", "/fork", {}),
            ("POST", "/abort", None),
        ]:
            answer = await client.http.request(method, f"/opencode/session/{given}{path}", json=body)
            assert answer.status_code == 404, (method, given, path, answer.text)
            assert answer.json()["name"] == "NotFoundError"
    assert (await client.get(f"/session/{real}"))["id"] == real


async def test_ids_of_the_wrong_kind_or_of_another_session(client: OpenCode) -> None:
    mine, other = await client.new_session(), await client.new_session()
    message = (await client.prompt(other, "x"))["info"]["id"]
    for wrong in (message, mine, "msg_x", Ids("x").next("msg", 1.0)):
        assert (await client.http.get(f"/opencode/session/{mine}/message/{wrong}")).status_code == 404
    for wrong in ("per_x", mine, message):
        reply = await client.http.post(f"/opencode/permission/{wrong}/reply", json={"reply": "once"})
        assert (reply.status_code, reply.json()["_tag"]) == (404, "PermissionNotFoundError")
        answer = await client.http.post(f"/opencode/question/{wrong}/reply", json={"answers": [["x"]]})
        assert (answer.status_code, answer.json()["_tag"]) == (404, "QuestionNotFoundError")
    async with following(client) as heard:
        await client.prompt_async(other, "tool ls")
        asked = (await heard.first("permission.asked"))["id"]
        elsewhere = f"/opencode/session/{mine}/permissions/{asked}"
        assert (await client.http.post(elsewhere, json={"response": "once"})).status_code == 404
        assert (await client.http.post(f"/opencode/question/{asked}/reject")).status_code == 404
        await client.post(f"/session/{other}/abort")
        await heard.first("permission.replied")
    forked = await client.http.post(f"/opencode/session/{mine}/fork", json={"messageID": message})
    assert forked.status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b'{"parts":{}}',
        b'{"parts":[1]}',
        b'{"parts":[]}',
        b"[" * 100_000,
        b'{"parts":[{"type":"nothing"}]}',
        b'{"parts":[{"type":"text","text":"x"}],"model":"mock"}',
    ],
)
async def test_bodies_that_are_no_prompts(client: OpenCode, body: bytes) -> None:
    session = await client.new_session()
    for path in ("message", "prompt_async"):
        headers = {"Content-Type": "application/json"}
        answer = await client.http.post(f"/opencode/session/{session}/{path}", content=body, headers=headers)
        assert answer.status_code == 400, answer.text
        assert answer.json()["name"] == "BadRequest"
    assert await client.messages(session) == []


async def test_forms_of_foreign_pages_are_refused(client: OpenCode) -> None:
    answer = await client.http.post("/opencode/session", data={"title": "x"})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/session?limit=many", 400),
        ("/session?directory=relative/path", 400),
        ("/session?directory=%00", 400),
        ("/session?directory=%FF", 400),
        ("/file", 400),
        ("/find", 400),
        ("/nowhere", 404),
        ("/", 404),
        ("", 404),
        ("/session/", 200),
        ("/api/session?limit=many", 400),
        ("/api/session?order=up", 400),
        ("/api/session?cursor=nonsense", 400),
        ("/api/event", 400),
    ],
)
async def test_strange_addresses(client: OpenCode, path: str, status: int) -> None:
    answer = await client.http.get(f"/opencode{path}")
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] in ("application/json", "application/problem+json")


async def test_a_method_that_is_not_served_is_said_so(client: OpenCode) -> None:
    answer = await client.http.put("/opencode/session", json={})
    assert answer.status_code == 405


async def test_files_outside_the_roots_stay_unread(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("hidden")
    async with running_server(tmp_path / "server", "--fs-root", str(root)) as server, opencode(server.url) as client:
        for query in ({"path": "../secret"}, {"path": str(tmp_path / "secret")}):
            answer = await client.http.get("/opencode/file/content", params={"directory": str(root), **query})
            assert answer.status_code == 403
            assert "hidden" not in answer.text
        outside = await client.http.get("/opencode/find/file", params={"directory": str(tmp_path), "query": "secret"})
        assert outside.json() == []


async def test_a_reader_that_does_not_read_is_disconnected_and_harms_nobody(tmp_path: Path) -> None:
    env = {"SANDBOX_AGENT_OPENCODE_STREAM_BYTES": "3000000"}
    async with running_server(tmp_path, env=env) as server, opencode(server.url) as client:
        session = await client.new_session()
        async with raw_client(server.port) as stalled, following(client) as heard:
            await stalled.send(b"GET /opencode/event HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for _ in range(20):
                await client.prompt(session, "chunks 100 5000")
            await heard.until(lambda heard: len(heard.of("session.idle")) >= 20)
            assert heard.messages(session) == await client.messages(session)
            await stalled.read_end()  # its stream was ended, for it to come back


async def test_events_end_with_the_server_and_a_stalled_stream_does_not_hold_it(own_server: Server) -> None:
    async with opencode(own_server.url) as client, following(client) as heard:
        assert await own_server.stop() == 0
        assert heard.types()[0] == "server.connected"


async def test_two_who_answer_the_same_permission_at_once_settle_it_once(client: OpenCode) -> None:
    session = await client.new_session()
    async with following(client) as heard:
        await client.prompt_async(session, "tool ls")
        asked = (await heard.first("permission.asked"))["id"]

        async def reply(word: str) -> httpx.Response:
            return await client.http.post(f"/opencode/permission/{asked}/reply", json={"reply": word})

        answers: list[Any] = await asyncio.gather(*(reply(word) for word in ["once", "reject"] * 4))
        assert {answer.status_code for answer in answers} <= {200, 404}
        await heard.until(lambda heard: session in [one["sessionID"] for one in heard.of("session.idle")])
        assert len(heard.of("permission.replied")) == 1
