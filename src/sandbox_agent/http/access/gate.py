"""The gate in front of every route: Host, Origin, credentials, in one pass over the headers and without waiting."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, quote, urlencode

from sandbox_agent.errors import ClientError, Forbidden
from sandbox_agent.http.access.auth import Credentials, is_same_origin_use, refusal
from sandbox_agent.http.access.origins import Cors, HostNames, is_own_origin
from sandbox_agent.http.asgi.messages import NO_STORE, Headers, Response, Scope
from sandbox_agent.http.asgi.problems import problem_response
from sandbox_agent.http.asgi.routes import Place
from sandbox_agent.http.asgi.websocket import SUBPROTOCOL


@dataclass(frozen=True, slots=True)
class Admission:
    """`response` turns the request away; `headers` go with whatever is answered.

    `is_trusted` is False where the credentials are still to come: the sign-in."""

    response: Response | None = None
    headers: Headers = field(default_factory=list)
    is_trusted: bool = True


_ADMITTED = Admission()
_WATCHED = frozenset(
    {b"host", b"origin", b"authorization", b"cookie", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"}
)
_ELSEWHERE = frozenset({b"cross-site", b"same-site"})
_PAGES = "/ui/"


class Gate:
    def __init__(self, credentials: Credentials, hosts: HostNames, cors: Cors) -> None:
        self._credentials = credentials
        self._hosts = hosts
        self._cors = cors

    def admits(self, scope: Scope) -> bool:
        """Whether it plainly may come in: one known Host, the right token, nothing of a browser. Else ask `judge`."""
        host = authorization = None
        for name, value in scope["headers"]:
            if name in _WATCHED:
                if name == b"host" and host is None:
                    host = value
                elif name == b"authorization" and authorization is None:
                    authorization = value
                else:
                    return False
        if host is None or not self._hosts.is_ours(host):
            return False
        credentials = self._credentials
        return not credentials.is_needed or (authorization is not None and credentials.is_bearer(authorization))

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
        if place is not None and place.is_open and scope["type"] == "http":
            return replace(admitted, is_trusted=False)
        given = seen.get(b"authorization")
        if given is not None:
            is_good = len(given) == 1 and credentials.is_bearer(given[0])
        elif self._has_cookie(scope, seen, is_own=is_own):
            is_good = True
        elif scope["type"] == "websocket":
            is_good = self._has_socket_token(scope) or self._has_ticket(scope)
        else:
            is_good = scope["method"] == "GET" and self._has_ticket(scope)
            if is_good and scope["path"].startswith(_PAGES):
                return Admission(self._signed_in(scope), admitted.headers)
        return admitted if is_good else Admission(refusal(scope), admitted.headers)

    def _has_cookie(self, scope: Scope, seen: dict[bytes, list[bytes]], *, is_own: bool) -> bool:
        cookies, site = seen.get(b"cookie"), seen.get(b"sec-fetch-site")
        if cookies is None or not self._credentials.has_session(cookies):
            return False
        is_websocket = scope["type"] == "websocket"
        return is_same_origin_use(
            "GET" if is_websocket else scope["method"],
            is_websocket=is_websocket,
            fetch_site=site[0] if site else None,
            has_own_origin=is_own,
        )

    def _has_socket_token(self, scope: Scope) -> bool:
        """A token as a subprotocol or, for clients that know nothing else, in the query of a WebSocket."""
        offered = scope.get("subprotocols") or []
        tokens = [name.removeprefix(SUBPROTOCOL) for name in offered if name.startswith(SUBPROTOCOL)]
        if not tokens:
            tokens = [value for name, value in _query(scope) if name == "access_token"]
        return len(tokens) == 1 and self._credentials.is_token(tokens[0].encode())

    def _has_ticket(self, scope: Scope) -> bool:
        if b"ticket=" not in scope["query_string"]:
            return False
        tickets = [value for name, value in _query(scope) if name == "ticket"]
        return len(tickets) == 1 and self._credentials.tickets.take(tickets[0])

    def _signed_in(self, scope: Scope) -> Response:
        """A page that was opened with a ticket: the browser gets its cookie, and an address without the ticket."""
        rest = urlencode([(name, value) for name, value in _query(scope) if name != "ticket"])
        location = "./" + quote(scope["path"].rpartition("/")[2]) + (f"?{rest}" if rest else "")
        headers = ((b"location", location.encode()), self._credentials.new_cookie(scope), NO_STORE)
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
