"""Host headers: no name of somebody else may be pointed at us."""

from __future__ import annotations

import pytest

from support.raw import ask, request
from support.server import Server


@pytest.mark.parametrize(
    "host",
    ["evil.com", "evil.com:2468", "127.evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "evillocalhost"],
)
@pytest.mark.promise("P-security-6")
def test_a_foreign_name_is_refused(open_server: Server, host: str) -> None:
    assert ask(open_server.port, request("GET", "/v1/health", host=host)).status == 403


@pytest.mark.parametrize("host", ["localhost.", "127.0.0.1.", "evil.com."])
def test_a_trailing_dot_is_refused(open_server: Server, host: str) -> None:
    assert ask(open_server.port, request("GET", "/v1/health", host=host)).status == 403


@pytest.mark.parametrize(
    "host",
    ["", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:999999", "[::1", "[::1]x", "2130706433", "0x7f.1", "127.1", "0.0.0.0",
     "169.254.169.254", "user@127.0.0.1", "127.0.0.1/..", "127.0.0.1 evil.com", "\xe9"],
)  # fmt: skip
def test_a_strange_host_is_refused(open_server: Server, host: str) -> None:
    assert ask(open_server.port, request("GET", "/v1/health", host=host)).status in {400, 403}


def test_an_absent_host_is_refused(open_server: Server) -> None:
    assert ask(open_server.port, request("GET", "/v1/health", host=None)).status == 400


def test_an_absent_host_is_refused_of_http_1_0_too(open_server: Server) -> None:
    assert ask(open_server.port, b"GET /v1/health HTTP/1.0\r\n\r\n").status == 400


def test_a_doubled_host_is_refused(open_server: Server) -> None:
    doubled = request("GET", "/v1/health", ("Host", "evil.com"))
    assert ask(open_server.port, doubled).status == 400


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:80", "[::1]", "[::1]:2468"])
def test_names_of_loopback_are_served(open_server: Server, host: str) -> None:
    assert ask(open_server.port, request("GET", "/v1/health", host=host)).status == 200


def test_an_absolute_request_target_does_not_replace_the_host(open_server: Server) -> None:
    target = request("GET", "http://127.0.0.1/v1/health", host="evil.com")
    assert ask(open_server.port, target).status == 403


@pytest.mark.promise("P-security-6")
def test_the_host_is_checked_for_those_with_the_token_too(locked_server: Server) -> None:
    from support.served import TOKEN

    evil = request("GET", "/v1/health", ("Authorization", f"Bearer {TOKEN}"), host="evil.com")
    assert ask(locked_server.port, evil).status == 403
