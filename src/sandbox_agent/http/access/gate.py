"""The gate in front of every route: Host, Origin, credentials, in one pass over the headers and without waiting."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from sandbox_agent.core.users import OWNER, User
from sandbox_agent.errors import ClientError, Forbidden
from sandbox_agent.http.access.auth import Credentials, is_same_origin_use, refusal
from sandbox_agent.http.access.behalf import ON_BEHALF, read_user
from sandbox_agent.http.access.origins import Cors, HostNames, is_own_origin
from sandbox_agent.http.asgi.messages import NO_STORE, Headers, Response, Scope
from sandbox_agent.http.asgi.problems import problem_response
from sandbox_agent.http.asgi.routes import Password, Place
from sandbox_agent.http.asgi.websocket import SUBPROTOCOL


class Admission(msgspec.Struct, frozen=True):
    """`response` turns the request away; `headers` go with whatever is answered.

    `user` is None where the credentials are still to come: the sign-in."""

    response: Response | None = None
    headers: Headers = msgspec.field(default_factory=list)
    user: User | None = OWNER
    is_node: bool = False
    """Another node asks, on behalf of the user."""


_ADMITTED = Admission()
_WATCHED = frozenset(
    {b"host", b"origin", b"authorization", b"cookie", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"}
    | {ON_BEHALF}
)
_ELSEWHERE = frozenset({b"cross-site", b"same-site"})
_PAGES = "/ui/"


class Gate:
    def __init__(self, credentials: Credentials, hosts: HostNames, cors: Cors) -> None:
        self._credentials = credentials
        self._hosts = hosts
        self._cors = cors

    def admits(self, scope: Scope) -> User | None:
        """Who plainly may come in: one known Host, a good token, nothing of a browser. Else ask `judge`."""
        host = authorization = None
        for name, value in scope["headers"]:
            if name in _WATCHED:
                if name == b"host" and host is None:
                    host = value
                elif name == b"authorization" and authorization is None:
                    authorization = value
                else:
                    return None
        if host is None or not self._hosts.is_ours(host):
            return None
        credentials = self._credentials
        if not credentials.is_needed:
            return OWNER
        return None if authorization is None else credentials.bearer(authorization)

    def judge(self, scope: Scope, place: Place | None) -> Admission:
        """Let it in, or say what to answer instead."""
        seen: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            if name in _WATCHED:
                seen.setdefault(name, []).append(value)
        hosts = seen.get(b"host", ())
        if len(hosts) != 1:
            return Admission(problem_response(ClientError(f"exactly one Host header is required, got {len(hosts)}")))
        if not self._hosts.is_ours(hosts[0]):
            return Admission(
                problem_response(Forbidden(f"Host {_clip(hosts[0])} is not allowed; add it with --allow-host"))
            )
        if b"origin" in seen or b"sec-fetch-site" in seen:
            return self._judge_page(scope, place, seen)
        return self._judge_credentials(scope, place, seen, _ADMITTED, is_own=False)

    def _judge_page(self, scope: Scope, place: Place | None, seen: dict[bytes, list[bytes]]) -> Admission:
        """Something that a browser sent: pages of other origins are kept out, unless they are listed."""
        origins = seen.get(b"origin", [])
        if len(origins) > 1:
            return Admission(problem_response(ClientError("at most one Origin header is allowed")))
        origin = origins[0] if origins else None
        is_own = origin is not None and is_own_origin(origin, seen[b"host"][0])
        is_listed = origin is not None and not is_own and self._cors.allows(origin)
        if origin is not None and not is_own and not is_listed:
            return Admission(
                problem_response(Forbidden(f"Origin {_clip(origin)} is not allowed; add it with --cors-allow-origin"))
            )
        is_elsewhere = not _ELSEWHERE.isdisjoint(seen.get(b"sec-fetch-site", ()))
        if is_elsewhere and not is_listed and not _is_visit(scope, place, seen):
            return Admission(
                problem_response(
                    Forbidden("cross-site requests are not allowed; add the site with --cors-allow-origin")
                )
            )
        headers = self._cors.answer_headers(origin) if is_listed and origin is not None else []
        if is_listed and scope["type"] == "http" and _is_preflight(scope):
            return Admission(Response(204, headers=tuple(self._cors.preflight_headers())), headers)
        return self._judge_credentials(scope, place, seen, Admission(headers=headers), is_own=is_own)

    def _judge_credentials(
        self,
        scope: Scope,
        place: Place | None,
        seen: dict[bytes, list[bytes]],
        admitted: Admission,
        *,
        is_own: bool,
    ) -> Admission:
        credentials = self._credentials
        if not credentials.is_needed:
            return admitted
        if place is not None and place.is_open and (scope["type"] == "http" or place.door is not None):
            return msgspec.structs.replace(admitted, user=None)
        given = seen.get(b"authorization")
        password = place.password if place is not None else None
        if given is not None and ON_BEHALF in seen and credentials.is_node(given[0]):
            user = read_user(seen[ON_BEHALF][0])
            return msgspec.structs.replace(admitted, user=user, is_node=True) if user else Admission(refusal(scope))
        if given is not None:
            user = credentials.bearer(given[0]) if len(given) == 1 else None
            if user is None and password is not None and len(given) == 1:
                user = credentials.password(given[0], password.user)
        else:
            user = self._by_query_token(scope, password) or self._by_cookie(scope, seen, is_own=is_own)
            if user is None and scope["type"] == "websocket":
                user = self._by_socket_token(scope) or self._by_ticket(scope)
            elif user is None and scope["method"] == "GET":
                user = self._by_ticket(scope)
                if user is not None and scope["path"].startswith(_PAGES):
                    return Admission(self._signed_in(scope, user), admitted.headers)
        if user is not None:
            return msgspec.structs.replace(admitted, user=user)
        return Admission(refusal(scope) if password is None else password.refusal, admitted.headers)

    def _by_cookie(self, scope: Scope, seen: dict[bytes, list[bytes]], *, is_own: bool) -> User | None:
        cookies, site = seen.get(b"cookie"), seen.get(b"sec-fetch-site")
        user = None if cookies is None else self._credentials.signed_in(cookies)
        is_websocket = scope["type"] == "websocket"
        is_ours = is_same_origin_use(
            "GET" if is_websocket else scope["method"],
            is_websocket=is_websocket,
            fetch_site=site[0] if site else None,
            has_own_origin=is_own,
        )
        return user if is_ours else None

    def _by_socket_token(self, scope: Scope) -> User | None:
        """A token as a subprotocol or, for clients that know nothing else, in the query of a WebSocket."""
        offered = scope.get("subprotocols") or []
        tokens = [name.removeprefix(SUBPROTOCOL) for name in offered if name.startswith(SUBPROTOCOL)]
        if not tokens:
            tokens = [value for name, value in _query(scope) if name == "access_token"]
        return self._credentials.holder(tokens[0].encode()) if len(tokens) == 1 else None

    def _by_query_token(self, scope: Scope, password: Password | None) -> User | None:
        """The token as it is, or with the user in base64 as in Basic: both are sent."""
        if password is None:
            return None
        given = [value.encode() for name, value in _query(scope) if name == password.query]
        credentials = self._credentials
        return credentials.holder(given[0]) or credentials.pair(given[0], password.user) if len(given) == 1 else None

    def _by_ticket(self, scope: Scope) -> User | None:
        if b"ticket=" not in scope["query_string"]:
            return None
        tickets = [value for name, value in _query(scope) if name == "ticket"]
        return self._credentials.ticket_holder(tickets[0]) if len(tickets) == 1 else None

    def _signed_in(self, scope: Scope, user: User) -> Response:
        """A page that was opened with a ticket: the browser gets its cookie, and an address without the ticket."""
        rest = urlencode([(name, value) for name, value in _query(scope) if name != "ticket"])
        location = "./" + quote(scope["path"].rpartition("/")[2]) + (f"?{rest}" if rest else "")
        headers = ((b"location", location.encode()), self._credentials.new_cookie(scope, user), NO_STORE)
        return Response(303, headers=headers)


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and any(n == b"access-control-request-method" for n, _ in scope["headers"])


def _is_visit(scope: Scope, place: Place | None, seen: dict[bytes, list[bytes]]) -> bool:
    """Somebody followed a link to a page of ours."""
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and place is not None
        and place.is_page
        and seen.get(b"sec-fetch-mode") == [b"navigate"]
        and seen.get(b"sec-fetch-dest") == [b"document"]
    )


def _query(scope: Scope) -> list[tuple[str, str]]:
    try:
        return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return []


def _clip(value: bytes) -> str:
    return ascii(value[:100].decode("latin-1"))
