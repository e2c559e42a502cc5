"""How a person with a token uses a browser: tickets, signing in, the cookie and what it is good for."""

from __future__ import annotations

import re

import httpx
import pytest

from sandbox_agent.http.access.tickets import Expiring
from support.raw import ask, request, upgrade
from support.served import BEARER, TOKEN, client
from support.server import Server


def new_ticket(server: Server) -> str:
    with client(server, **BEARER) as http:
        answer = http.post("/v1/tickets")
    assert answer.status_code == 201
    return str(answer.json()["ticket"])


def signed_in(server: Server) -> str:
    """The cookie of a browser that has signed in."""
    with client(server) as http:
        answer = http.post("/sign-in", data={"token": TOKEN}, headers={"Origin": server.url})
    assert answer.status_code == 303
    assert answer.headers["location"] == "./ui/"
    return str(answer.headers["set-cookie"])


@pytest.mark.promise("P-security-11")
def test_a_ticket_is_good_for_one_get(locked_server: Server) -> None:
    ticket = new_ticket(locked_server)
    with client(locked_server) as http:
        assert http.get("/v1/health", params={"ticket": ticket}).status_code == 200
        assert http.get("/v1/health", params={"ticket": ticket}).status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD"])
def test_a_ticket_is_good_for_get_only(locked_server: Server, method: str) -> None:
    ticket = new_ticket(locked_server)
    with client(locked_server) as http:
        assert http.request(method, "/v1/fs/file", params={"path": "x", "ticket": ticket}).status_code == 401


def test_two_tickets_in_one_request_are_refused(locked_server: Server) -> None:
    one, two = new_ticket(locked_server), new_ticket(locked_server)
    with client(locked_server) as http:
        assert http.get(f"/v1/health?ticket={one}&ticket={two}").status_code == 401


def test_a_ticket_passes_a_websocket_through_the_gate_once(locked_server: Server) -> None:
    ticket = new_ticket(locked_server)
    first = ask(locked_server.port, upgrade(f"/nowhere?ticket={ticket}"))
    again = ask(locked_server.port, upgrade(f"/nowhere?ticket={ticket}"))
    assert (first.status, again.status) == (404, 401)


def test_a_token_passes_a_websocket_as_subprotocol_or_in_its_query(locked_server: Server) -> None:
    offered = ("Sec-WebSocket-Protocol", f"acp, bearer.{TOKEN}")
    assert ask(locked_server.port, upgrade("/nowhere", offered)).status == 404
    assert ask(locked_server.port, upgrade(f"/nowhere?access_token={TOKEN}")).status == 404
    wrong = ("Sec-WebSocket-Protocol", "acp, bearer.wrong")
    assert ask(locked_server.port, upgrade("/nowhere", wrong)).status == 401


@pytest.mark.promise("P-security-11")
def test_tickets_die_of_age() -> None:
    now = [100.0]
    tickets = Expiring(lifetime=30, limit=10, clock=lambda: now[0])
    young, old = tickets.issue(), tickets.issue()
    now[0] += 29.9
    assert tickets.take(young)
    now[0] += 0.2
    assert not tickets.take(old)


def test_a_flood_of_tickets_costs_bounded_memory() -> None:
    tickets = Expiring(lifetime=30, limit=10)
    issued = [tickets.issue() for _ in range(1000)]
    good = [ticket for ticket in issued if tickets.holder(ticket)]
    assert good == issued[-10:]


def test_a_page_opened_with_a_ticket_signs_the_browser_in_and_drops_the_ticket(locked_server: Server) -> None:
    ticket = new_ticket(locked_server)
    with client(locked_server) as http:
        answer = http.get("/ui/sessions", params={"ticket": ticket, "theme": "dark"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "./sessions?theme=dark"
        assert http.get("/v1/health").status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(locked_server: Server) -> None:
    cookie = signed_in(locked_server)
    assert "; HttpOnly" in cookie
    assert "; SameSite=Strict" in cookie
    assert "; Path=/" in cookie
    assert re.search(r"Max-Age=\d+", cookie)
    assert TOKEN not in cookie
    assert cookie.startswith(f"sandbox-agent-{locked_server.port}=")


@pytest.mark.parametrize("form", [{}, {"token": ""}, {"token": "wrong"}, {"token": [TOKEN, TOKEN]}])
def test_a_wrong_sign_in_gets_the_same_401_and_no_cookie(locked_server: Server, form: dict[str, str]) -> None:
    with client(locked_server) as http:
        answer, other = http.post("/sign-in", data=form), http.get("/v1/health")
    assert answer.status_code == 401
    assert answer.content == other.content
    assert "set-cookie" not in answer.headers


def test_another_site_cannot_sign_the_browser_in(locked_server: Server) -> None:
    with client(locked_server) as http:
        answer = http.post("/sign-in", data={"token": TOKEN}, headers={"Origin": "https://evil.com"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("referer", "location"),
    [
        ("{url}/docs", "/docs"),
        ("{url}/ui/sessions/x", "/ui/sessions/x"),
        ("{url}//evil.com", "/ui/"),
        ("https://evil.com/elsewhere", "/ui/"),
        ("{url}/ui/\\evil.com", "/ui/"),
    ],
)
def test_signing_in_leads_back_to_a_page_of_ours(locked_server: Server, referer: str, location: str) -> None:
    headers = {"Referer": referer.format(url=locked_server.url)}
    with client(locked_server) as http:
        answer = http.post("/sign-in", data={"token": TOKEN}, headers=headers)
    assert answer.headers["location"] == f".{location}"


def test_a_signed_in_browser_may_read_write_and_open_sockets(locked_server: Server) -> None:
    cookie = signed_in(locked_server).partition(";")[0]
    own = {"Cookie": cookie, "Origin": locked_server.url}
    with client(locked_server) as http:
        assert http.get("/v1/health", headers={"Cookie": cookie}).status_code == 200
        assert http.post("/v1/tickets", headers=own).status_code == 201
    host = f"127.0.0.1:{locked_server.port}"
    shake = upgrade("/nowhere", ("Cookie", cookie), ("Origin", locked_server.url), host=host)
    assert ask(locked_server.port, shake).status == 404


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
@pytest.mark.promise("P-security-13")
def test_the_cookie_does_not_count_for_pages_on_another_port_of_the_host(locked_server: Server, site: str) -> None:
    cookie = signed_in(locked_server).partition(";")[0]
    with client(locked_server) as http:
        headers = {"Cookie": cookie, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert http.get("/v1/health", headers=headers).status_code == 403


def test_the_cookie_alone_does_not_count_for_writing(locked_server: Server) -> None:
    """A browser would say where the page came from; what says nothing gets nothing changed."""
    cookie = signed_in(locked_server).partition(";")[0]
    with client(locked_server) as http:
        assert http.post("/v1/tickets", headers={"Cookie": cookie}).status_code == 401
    assert ask(locked_server.port, upgrade("/nowhere", ("Cookie", cookie))).status == 401


def test_a_forged_cookie_is_refused(locked_server: Server) -> None:
    forged = f"sandbox-agent-{locked_server.port}=forged"
    assert ask(locked_server.port, request("GET", "/v1/health", ("Cookie", forged))).status == 401


def test_signing_out_ends_the_session(locked_server: Server) -> None:
    cookie = signed_in(locked_server).partition(";")[0]
    own = {"Cookie": cookie, "Origin": locked_server.url}
    with client(locked_server) as http:
        answer = http.post("/sign-out", headers=own)
        assert answer.status_code == 303
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert http.get("/v1/health", headers={"Cookie": cookie}).status_code == 401


@pytest.mark.promise("P-security-12")
def test_a_wrong_bearer_is_not_saved_by_a_good_cookie(locked_server: Server) -> None:
    cookie = signed_in(locked_server).partition(";")[0]
    answer = httpx.get(
        f"{locked_server.url}/v1/health",
        headers={"Cookie": cookie, "Authorization": "Bearer wrong"},
        trust_env=False,
    )
    assert answer.status_code == 401
