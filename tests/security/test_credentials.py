"""Every route and every kind of bad credential: one and the same 401."""

from __future__ import annotations

import httpx
import pytest

from sandbox_agent.http.api.removed import REMOVED
from sandbox_agent.http.doors.opencode.door import PREFIX as OPENCODE
from support.raw import RawAnswer, ask, request, upgrade
from support.served import BEARER, TOKEN, client, problem
from support.server import Server
from support.surface import every_method_and_path, route_table

OTHERS = [
    ("GET", "/"),
    ("GET", "/ui/"),
    ("GET", "/ui/assets/app.js"),
    ("GET", "/favicon.ico"),
    ("GET", "/v1/nowhere"),
    ("GET", "/nowhere"),
    ("POST", "/v1/sessions/x/messages"),
    ("GET", "/acp"),
    ("HEAD", "/v1/health"),
    ("HEAD", "/nowhere"),
    ("OPTIONS", "/v1/rpc"),
    ("PATCH", "/v1/health"),
    ("TRACE", "/v1/health"),
    ("GET", "/v1/health?access_token=" + TOKEN),
    ("GET", "/v1/health?token=" + TOKEN),
    ("GET", "/v1/health?ticket=guessed"),
    ("GET", "/v1/health?ticket="),
    ("GET", "/%2e%2e/v1/health"),
]
BAD: dict[str, list[tuple[str, str]]] = {
    "none": [],
    "wrong": [("Authorization", "Bearer wrong")],
    "wrong of the same length": [("Authorization", "Bearer " + TOKEN[:-1] + "!")],
    "a prefix": [("Authorization", "Bearer " + TOKEN[:-1])],
    "more behind": [("Authorization", f"Bearer {TOKEN}x")],
    "empty": [("Authorization", "")],
    "only the scheme": [("Authorization", "Bearer")],
    "an empty token": [("Authorization", "Bearer ")],
    "wrong scheme": [("Authorization", f"Basic {TOKEN}")],
    "no scheme": [("Authorization", TOKEN)],
    "doubled": [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")],
    "right and wrong": [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer wrong")],
    "two in one": [("Authorization", f"Bearer {TOKEN}, Bearer {TOKEN}")],
    "in another header": [("X-Authorization", f"Bearer {TOKEN}"), ("Proxy-Authorization", f"Bearer {TOKEN}")],
    "as a cookie": [("Cookie", f"sandbox-agent={TOKEN}; token={TOKEN}; Authorization=Bearer {TOKEN}")],
    "not ASCII": [("Authorization", "Bearer \xff\xfe")],
}


def telling(answer: RawAnswer) -> tuple[int, dict[str, str], bytes]:
    return answer.status, {name: value for name, value in answer.headers.items() if name != "date"}, answer.body


@pytest.fixture(scope="module")
def uniform(locked_server: Server) -> tuple[int, dict[str, str], bytes]:
    return telling(ask(locked_server.port, request("GET", "/v1/health")))


@pytest.fixture(scope="module")
def uniform_there(locked_server: Server) -> tuple[int, dict[str, str], bytes]:
    """At `/opencode`, where refusals are in OpenCode's words: those of a path that does not exist."""
    return telling(ask(locked_server.port, request("GET", f"{OPENCODE}/nowhere")))


def test_opencodes_uniform_answer_is_a_401_that_its_clients_understand(
    uniform_there: tuple[int, dict[str, str], bytes],
) -> None:
    status, headers, body = uniform_there
    assert status == 401
    assert headers["www-authenticate"].startswith("Basic")
    assert TOKEN.encode() not in body


def test_the_uniform_answer_is_a_401_that_says_how_to_come_in(uniform: tuple[int, dict[str, str], bytes]) -> None:
    status, headers, body = uniform
    assert status == 401
    assert headers["www-authenticate"].startswith("Bearer")
    assert headers["content-type"] == "application/problem+json"
    assert TOKEN.encode() not in body


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize(("method", "path"), [*every_method_and_path(), *OTHERS])
@pytest.mark.promise("P-security-3")
def test_every_route_gives_the_same_401(
    locked_server: Server,
    uniform: tuple[int, dict[str, str], bytes],
    uniform_there: tuple[int, dict[str, str], bytes],
    method: str,
    path: str,
    kind: str,
) -> None:
    answer = ask(locked_server.port, _asking(method, path, BAD[kind]))
    status, headers, body = uniform_there if path.startswith(OPENCODE) else uniform
    assert telling(answer) == (status, headers, b"" if method == "HEAD" else body)


def _asking(method: str, path: str, headers: list[tuple[str, str]]) -> bytes:
    return request(method, path, *headers)


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("path", ["/v1/rpc", "/acp", "/nowhere", "/ui/"])
def test_a_websocket_without_credentials_is_refused_before_the_upgrade(
    locked_server: Server, path: str, kind: str
) -> None:
    answer = ask(locked_server.port, upgrade(path, *BAD[kind]))
    assert answer.status == 401
    assert "sec-websocket-accept" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/ui/", "/docs", "/nowhere", "/v1/health"])
def test_a_browser_gets_the_same_sign_in_page_everywhere(locked_server: Server, path: str) -> None:
    headers = {"Accept": "text/html,application/xhtml+xml"}
    with client(locked_server) as http:
        answer, other = http.get(path, headers=headers), http.get("/docs", headers=headers)
    assert answer.status_code == 401
    assert answer.content.replace(b"../", b"") == other.content
    assert b"<form" in answer.content
    assert b"<script" not in answer.content
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.promise("P-security-3")
def test_the_table_that_is_tested_is_the_whole_surface(locked_server: Server) -> None:
    with client(locked_server, **BEARER) as http:
        described = http.get("/v1/openapi.json").json()["paths"]
    removed = {path for _, path, _ in REMOVED}
    assert set(described) - removed <= {entry.path for entry in route_table()}


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_right_token_comes_in_whatever_the_case_of_the_scheme(locked_server: Server, scheme: str) -> None:
    answer = httpx.get(
        f"{locked_server.url}/v1/health", headers={"Authorization": f"{scheme} {TOKEN}"}, trust_env=False
    )
    assert answer.status_code == 200


def test_with_the_token_unknown_paths_are_told_apart(locked_server: Server) -> None:
    with client(locked_server, **BEARER) as http:
        assert problem(http.get("/nowhere")) == "not_found"
        assert problem(http.get("/v1/nowhere")) == "v1_removed"
