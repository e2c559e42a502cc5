"""CORS: off unless asked for, and then for the listed origins only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_agent.errors import ConfigError
from sandbox_agent.http.access.origins import Cors
from support.raw import ask, upgrade
from support.served import BEARER, TOKEN, client, served
from support.server import Server

LISTED = "https://app.example.com"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ["--cors-allow-origin", LISTED, "--cors-allow-origin", "http://localhost:3000"]
    more = ["--cors-allow-method", "GET", "--cors-allow-method", "POST", "--cors-allow-header", "X-Mine"]
    with served(tmp_path_factory.mktemp("cors"), "--token", TOKEN, *flags, *more) as running:
        yield running


def preflight(server: Server, origin: str) -> dict[str, str]:
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-mine"}
    with client(server) as http:
        answer = http.options("/v1/rpc", headers=headers)
    return {"status": str(answer.status_code), **answer.headers}


def test_a_preflight_of_a_listed_origin_is_answered_without_a_token(server: Server) -> None:
    answer = preflight(server, LISTED)
    assert answer["status"] == "204"
    assert answer["access-control-allow-origin"] == LISTED
    assert answer["access-control-allow-methods"] == "GET, POST"
    assert answer["access-control-allow-headers"] == "X-Mine"
    assert "access-control-allow-credentials" not in answer
    assert answer["vary"] == "Origin"


@pytest.mark.parametrize(
    "origin", ["https://evil.com", "null", f"{LISTED}.evil.com", f"{LISTED}:8443", "http://app.example.com",
               "https://APP.example.com", "https://sub.app.example.com"]
)  # fmt: skip
@pytest.mark.promise("P-security-8")
def test_a_preflight_of_another_origin_gets_nothing(server: Server, origin: str) -> None:
    answer = preflight(server, origin)
    assert answer["status"] == "403"
    assert not [name for name in answer if name.startswith("access-control")]


def test_a_listed_page_still_needs_the_token_and_can_read_that_it_does(server: Server) -> None:
    with client(server) as http:
        answer = http.get("/v1/health", headers={"Origin": LISTED})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == LISTED


def test_a_listed_page_with_the_token_can_read_answers_and_their_headers(server: Server) -> None:
    headers = {"Origin": LISTED, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", **BEARER}
    with client(server) as http:
        answer = http.get("/v1/health", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == LISTED
    assert "X-ACP-Connection-Id" in answer.headers["access-control-expose-headers"]


def test_a_listed_page_may_open_a_websocket(server: Server) -> None:
    good = upgrade(f"/nowhere?access_token={TOKEN}", ("Origin", LISTED))
    bad = upgrade(f"/nowhere?access_token={TOKEN}", ("Origin", "https://evil.com"))
    assert (ask(server.port, good).status, ask(server.port, bad).status) == (404, 403)


def test_a_request_without_origin_gets_no_cors_headers(server: Server) -> None:
    with client(server, **BEARER) as http:
        answer = http.get("/v1/health")
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_everybody_and_credentials_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="credentials"):
        Cors(("*",), allows_credentials=True).check()


@pytest.mark.parametrize("origin", ["example.com", "https://example.com/", "https://*.example.com", "", "null"])
def test_an_origin_that_is_none_is_refused_at_start(origin: str) -> None:
    with pytest.raises(ConfigError, match="cors_allow_origin"):
        Cors((origin,)).check()


def test_a_header_name_cannot_smuggle_another_header() -> None:
    with pytest.raises(ConfigError, match="cors_allow_header"):
        Cors(("*",), headers=("X-A\r\nSet-Cookie: a=b",)).check()


def test_everybody_may_come_if_asked_so_but_not_nobody(tmp_path: Path) -> None:
    with served(tmp_path, "--cors-allow-origin", "*") as running, client(running) as http:
        assert (
            http.get("/v1/health", headers={"Origin": "https://any.org"}).headers["access-control-allow-origin"] == "*"
        )
        assert http.get("/v1/health", headers={"Origin": "null"}).status_code == 403


def test_credentials_are_allowed_if_asked_so(tmp_path: Path) -> None:
    with served(tmp_path, "--cors-allow-origin", LISTED, "--cors-allow-credentials") as running:
        assert preflight(running, LISTED)["access-control-allow-credentials"] == "true"
