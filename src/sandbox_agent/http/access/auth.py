"""Who may come in: the bearer token, a single-use ticket, or the cookie of a browser that has signed in."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from hashlib import sha256

from sandbox_agent.core.users import OWNER, User
from sandbox_agent.errors import Unauthorized
from sandbox_agent.http.access.tickets import new_browser_sessions, new_tickets
from sandbox_agent.http.access.tokens import NamedTokens
from sandbox_agent.http.asgi.messages import HTML, NO_STORE, Response, Scope
from sandbox_agent.http.asgi.problems import problem_response

SIGN_IN = "/sign-in"
_CHALLENGE = (b"www-authenticate", b'Bearer realm="sandbox-agent"')
_SAFE = frozenset({"GET", "HEAD"})


class Credentials:
    """Compares in constant time. Without a token, and without named ones when the server starts, all may come in."""

    def __init__(
        self,
        token: str | None,
        *,
        cookie_name: str = "sandbox-agent",
        named: NamedTokens | None = None,
        cluster_token: str | None = None,
    ) -> None:
        self.tickets = new_tickets()
        self.sessions = new_browser_sessions()
        self.named = named or NamedTokens(None)
        self.is_needed = token is not None or self.named.exist
        self._has_token = token is not None
        self._token = (token or "").encode()
        self._expected = b"Bearer " + self._token
        self._cookie_name = cookie_name
        self._of_nodes = None if cluster_token is None else f"Bearer {cluster_token}".encode()

    def is_node(self, authorization: bytes) -> bool:
        """Whether another node of the cluster sends this Authorization header."""
        return self._of_nodes is not None and hmac.compare_digest(authorization, self._of_nodes)

    def holder(self, token: bytes) -> User | None:
        """Who holds this token: the owner of the server, or whom it was made for."""
        if self._has_token and hmac.compare_digest(token, self._token):
            return OWNER
        return self.named.find(token)

    def bearer(self, authorization: bytes) -> User | None:
        """Who sends this Authorization header."""
        if self._has_token and hmac.compare_digest(authorization, self._expected):
            return OWNER
        scheme, _, given = authorization.partition(b" ")
        return self.holder(given) if scheme.lower() == b"bearer" else None

    def password(self, authorization: bytes, user: str) -> User | None:
        """Who sends Basic with the token as the password of `user`."""
        scheme, _, given = authorization.partition(b" ")
        return self.pair(given, user) if scheme.lower() == b"basic" else None

    def pair(self, encoded: bytes, user: str) -> User | None:
        """Who sends `user:token` in base64."""
        try:
            name, colon, token = b64decode(encoded.strip(), validate=True).partition(b":")
        except ValueError:
            return None
        return self.holder(token) if colon and name == user.encode() else None

    def signed_in(self, cookies: list[bytes]) -> User | None:
        """Who has signed in with the browser that sends these cookies."""
        found = [self.sessions.holder(value) for value in self._cookie_values(cookies)]
        return next((user for user in found if user is not None and self.named.is_current(user)), None)

    def ticket_holder(self, ticket: str) -> User | None:
        """Whom the ticket stands for; it is used up."""
        user = self.tickets.take(ticket)
        return user if user is not None and self.named.is_current(user) else None

    def end_session(self, cookies: list[bytes]) -> None:
        for value in self._cookie_values(cookies):
            self.sessions.take(value)

    def new_cookie(self, scope: Scope, user: User) -> tuple[bytes, bytes]:
        return self._set_cookie(self.sessions.issue(user), int(self.sessions.lifetime), scope)

    def no_cookie(self, scope: Scope) -> tuple[bytes, bytes]:
        return self._set_cookie("", 0, scope)

    def _cookie_values(self, cookies: list[bytes]) -> list[str]:
        pairs = [pair.strip().partition("=") for line in cookies for pair in line.decode("latin-1").split(";")]
        return [value for name, _, value in pairs if name == self._cookie_name]

    def _set_cookie(self, value: str, seconds: int, scope: Scope) -> tuple[bytes, bytes]:
        secure = "; Secure" if scope.get("scheme") in {"https", "wss"} else ""
        cookie = f"{self._cookie_name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        return b"set-cookie", cookie.encode()


def is_same_origin_use(method: str, *, is_websocket: bool, fetch_site: bytes | None, has_own_origin: bool) -> bool:
    """Whether a cookie may count: cookies are shared by all ports of a host, so the page must be our own.

    Browsers tell by Sec-Fetch-Site; where they do not (plain http beyond loopback), writing needs our Origin."""
    if fetch_site is not None:
        return fetch_site in {b"same-origin", b"none"}
    return has_own_origin or (method in _SAFE and not is_websocket)


_STYLE = (
    ":root{color-scheme:light dark;--bg:#f7f8f8;--card:#fff;--line:#bcc4c7;--text:#1a2224;--muted:#59676b;"
    "--accent:#0f766e;--on:#fff;--bad:#b3261e}@media(prefers-color-scheme:dark){:root{--bg:#12171a;--card:#191f22;--line:#47545a;"
    "--text:#e4eaeb;--muted:#9aa9ae;--accent:#4db6aa;--on:#06221f;"
    "--bad:#f28b82}}"
    "body{font:16px/1.5 system-ui,sans-serif;display:grid;place-items:center;min-height:90vh;margin:0;"
    "background:var(--bg);color:var(--text)}form{background:var(--card);padding:2rem;border:1px solid var(--line);"
    "border-radius:12px;width:min(20rem,calc(100vw - 6rem))}h1{font-size:1.1rem;margin:0 0 1rem}"
    "input,button{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin:.25rem 0;color:inherit;"
    "background:var(--bg);border:1px solid var(--line);border-radius:6px}"
    "button{background:var(--accent);border-color:var(--accent);color:var(--on);font-weight:600;cursor:pointer}"
    ":focus-visible{outline:2px solid var(--accent);outline-offset:1px}"
    "p{margin:.75rem 0 0;color:var(--muted);font-size:.85rem}"
    "[role=alert]{margin:0 0 1rem;color:var(--bad)}[aria-invalid]{border-color:var(--bad)}"
)
_SIGN_IN_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sign in - Sandbox Agent</title>'
    '<meta name="viewport" content="width=device-width"><style>' + _STYLE + "</style></head><body><main>"
    '<form method="post" action="{action}"><h1>Sandbox Agent</h1>{wrong}<label for="token">Token</label>'
    '<input id="token" name="token" type="password" autocomplete="current-password" autofocus required{marks}>'
    "<button>Sign in</button><p>The token is the value of <code>--token</code> or <code>SANDBOX_AGENT_TOKEN</code> "
    "that the server was started with, or one that was made for you.</p></form></main></body></html>"
)
_WRONG = '<p id="wrong" role="alert">This token is not valid. Check it and try again.</p>'
_WRONG_MARKS = ' aria-invalid="true" aria-describedby="wrong"'


def style_source(style: str) -> str:
    """A style sheet as a source in a content security policy."""
    return f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"


def page_headers(style: str, *, referrer: str = "no-referrer", form: str = "'none'") -> tuple[tuple[bytes, bytes], ...]:
    """What keeps a page of ours to itself: no scripts, no frames, nothing from elsewhere."""
    policy = (
        f"default-src 'none'; style-src {style_source(style)}; img-src data:; form-action {form}; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    return (
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", referrer.encode()),
        NO_STORE,
    )


REFUSED = problem_response(Unauthorized("a valid bearer token is required")).adding(_CHALLENGE, NO_STORE)
"""The one answer to everybody who may not come in, whatever was asked for."""


def refused_page(scope: Scope, *, has_tried: bool = False) -> Response:
    """The same for browsers that show it to a person. Its form finds us under any base path.

    `has_tried` is only for who has just sent a token: it tells that the token was wrong."""
    path = scope["path"].removeprefix(scope.get("root_path") or "")
    action = "../" * (path.count("/") - 1) + SIGN_IN.removeprefix("/")
    page = _SIGN_IN_PAGE.replace("{action}", action)
    page = page.replace("{wrong}", _WRONG if has_tried else "").replace("{marks}", _WRONG_MARKS if has_tried else "")
    headers = (_CHALLENGE, *page_headers(_STYLE, referrer="same-origin", form="'self'"))
    return Response(401, page.encode(), HTML, headers)


def refusal(scope: Scope) -> Response:
    if scope["type"] == "http" and scope["method"] == "GET":
        accept = b",".join(value for name, value in scope["headers"] if name == b"accept")
        if b"text/html" in accept:
            return refused_page(scope)
    return REFUSED
