"""What browsers need, as they cannot always send the token: tickets, and signing in and out."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import msgspec

from sandbox_agent.core.json_values import iso_time
from sandbox_agent.core.users import OWNER, User
from sandbox_agent.errors import UnsupportedMediaType
from sandbox_agent.http.access.auth import REFUSED, Credentials, refused_page
from sandbox_agent.http.access.tickets import TICKET_SECONDS
from sandbox_agent.http.asgi.exchange import Exchange, media_type, read_body
from sandbox_agent.http.asgi.messages import NO_STORE, Response, json_response
from sandbox_agent.http.asgi.routes import Operation

_FORM = "application/x-www-form-urlencoded"
_FORM_LIMIT = 16 << 10
_HOME = "/ui/"


class Ticket(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Valid once, as `?ticket=` of a GET or WebSocket request, until `expiresAt`."""

    ticket: str
    expires_at: str


ISSUE_TICKET = Operation(
    "issueTicket",
    "Create a single-use ticket that stands for the token",
    "server",
    "For EventSource and WebSocket in browsers, which cannot send headers, and for links: opening `/ui/?ticket=…` "
    "signs the browser in. Valid for 30 seconds, for GET requests only.",
    returns=Ticket,
    status=201,
    errors=(UnsupportedMediaType,),
)


class BrowserApi:
    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def issue_ticket(self, exchange: Exchange) -> Response:
        exchange.refuse_forms()
        ticket = Ticket(
            ticket=self._credentials.tickets.issue(exchange.user), expires_at=iso_time(time.time() + TICKET_SECONDS)
        )
        return json_response(ticket, status=201)

    async def sign_in(self, exchange: Exchange) -> Response:
        """A form with the token. A right one gets the browser its cookie; any other the answer that all get."""
        if media_type(exchange.header(b"content-type")) != _FORM:
            return REFUSED
        raw = await read_body(exchange.scope, exchange.receive, _FORM_LIMIT)
        given = parse_qs(raw.decode("latin-1"), max_num_fields=10).get("token", [])
        user = self._holder(given)
        if user is None:
            is_shown = "text/html" in (exchange.header(b"accept") or "")
            return refused_page(exchange.scope, has_tried=True) if is_shown else REFUSED
        where = (b"location", b"." + _return_to(exchange.header(b"referer")).encode())
        return Response(303, headers=(where, self._credentials.new_cookie(exchange.scope, user), NO_STORE))

    def _holder(self, given: list[str]) -> User | None:
        if not self._credentials.is_needed:
            return OWNER
        return self._credentials.holder(given[0].encode()) if len(given) == 1 else None

    async def sign_out(self, exchange: Exchange) -> Response:
        cookies = [value for name, value in exchange.scope["headers"] if name == b"cookie"]
        self._credentials.end_session(cookies)
        return Response(
            303, headers=((b"location", b"." + _HOME.encode()), self._credentials.no_cookie(exchange.scope))
        )


def _return_to(referer: str | None) -> str:
    """The page that asked for the token, below our root. Only the path counts, so it is one of ours."""
    path = urlsplit(referer or "").path
    is_page = path.startswith((_HOME, "/docs")) and path.isprintable() and path.isascii() and "\\" not in path
    return path if is_page else _HOME
