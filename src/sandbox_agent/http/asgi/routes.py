"""The route table: what is served where, by whom, and how the OpenAPI document describes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from sandbox_agent.core.users import Right
from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Asgi, Response, Scope

Handler = Callable[[Exchange], Awaitable[Any]]
"""Gives a value to be sent as JSON, an Response, or None when it has answered by itself."""


class Content(msgspec.Struct, frozen=True):
    """A body that is not JSON of one of our types."""

    media: tuple[str, ...]
    schema: dict[str, Any] = msgspec.field(default_factory=dict)


class Operation(msgspec.Struct, frozen=True):
    """How one method of one path is described; `query`, `body` and `returns` are the types that it works with."""

    name: str
    summary: str
    tag: str
    description: str = ""
    query: type | None = None
    body: type | Content | None = None
    returns: Any = None
    """A type, a Content, or None for a response without a body."""
    status: int = 200
    errors: tuple[type[SandboxAgentError] | int, ...] = ()
    is_body_optional: bool = False
    headers: tuple[tuple[str, str, bool], ...] = ()
    """Request headers: name, what it is for, whether it is required."""


class Endpoint(msgspec.Struct, frozen=True):
    method: str
    path: str
    handler: Handler
    operation: Operation | None
    is_open: bool = False
    """Checks the credentials by itself: the sign-in."""
    is_page: bool = False
    """For people: may be navigated to from elsewhere."""
    is_stream: bool = False
    """Its answer stays open: it counts as a subscriber."""
    needs: Right = Right.ADMIN
    """What a token must have to come here: all, unless the table says otherwise."""


class Password(msgspec.Struct, frozen=True):
    """A door whose clients may also send the token as a password (Basic) or in the query, and how they are refused."""

    user: str
    query: str
    refusal: Response


class Door(msgspec.Struct, frozen=True):
    """A raw ASGI app that serves several methods of one path, and WebSockets if it says so.

    `scope["path_params"]` holds what the braces of the path stand for."""

    path: str
    methods: tuple[str, ...]
    app: Asgi
    operations: dict[str, Operation] = msgspec.field(default_factory=dict)
    serves_websocket: bool = False
    streams: frozenset[str] = frozenset({"GET"})
    """Methods whose answers may stay open: they count as subscribers."""
    password: Password | None = None
    needs: Right = Right.ADMIN
    """What a token must have to come here at all. Of what it may do there the door decides."""
    is_open: bool = False
    """Checks the credentials by itself: other nodes have one of their own."""


class Place:
    """Everything that is served at one path."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.door: Door | None = None
        self.endpoints: dict[str, Endpoint] = {}

    def is_stream(self, scope: Scope) -> bool:
        """Whether the answer may stay open."""
        if scope["type"] == "websocket":
            return self.door is not None
        if self.door is not None:
            return scope["method"] in self.door.streams
        endpoint = self.endpoints.get(scope["method"])
        return endpoint is not None and endpoint.is_stream

    def needs(self, scope: Scope) -> Right:
        """What a token must have for this request. That there is nothing here anybody may know."""
        if self.door is not None:
            return self.door.needs
        endpoint = self.endpoint(scope["method"]) if scope["type"] == "http" else None
        return Right.READ if endpoint is None else endpoint.needs

    @property
    def allowed(self) -> list[str]:
        if self.door is not None:
            return list(self.door.methods)
        return (
            ["GET", "HEAD", *(m for m in self.endpoints if m != "GET")]
            if "GET" in self.endpoints
            else [*self.endpoints]
        )

    @property
    def password(self) -> Password | None:
        return self.door.password if self.door is not None else None

    @property
    def is_page(self) -> bool:
        return any(endpoint.is_page for endpoint in self.endpoints.values())

    @property
    def is_open(self) -> bool:
        if self.door is not None:
            return self.door.is_open
        return any(endpoint.is_open for endpoint in self.endpoints.values())

    @property
    def allow(self) -> bytes:
        return ", ".join(self.allowed).encode()

    def endpoint(self, method: str) -> Endpoint | None:
        return self.endpoints.get("GET" if method == "HEAD" else method)


class RouteTable:
    """Finds the place of a path: literal paths at once, templates by their segments."""

    def __init__(self, entries: Sequence[Endpoint | Door]) -> None:
        self.entries = tuple(entries)
        self.exact: dict[str, Place] = {}
        self._templates: list[tuple[list[str], Place]] = []
        for entry in entries:
            place = self._place(entry.path)
            if isinstance(entry, Door):
                place.door = entry
            else:
                place.endpoints[entry.method] = entry

    def places(self) -> Iterator[Place]:
        yield from self.exact.values()
        for _, place in self._templates:
            yield place

    def find(self, scope: Scope) -> Place | None:
        """The place, with `scope["path_params"]` set. Encoded slashes stay within their segment."""
        found = self.exact.get(scope["path"])
        if found is not None:
            return found
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        segments = raw.decode("latin-1").split("/")
        for template, place in self._templates:
            params = _match(template, segments)
            if params is not None:
                scope["path_params"] = params
                return place
        return None

    def _place(self, path: str) -> Place:
        if "{" not in path:
            return self.exact.setdefault(path, Place(path))
        for _, place in self._templates:
            if place.template == path:
                return place
        made = Place(path)
        self._templates.append((path.split("/"), made))
        return made


def _match(template: list[str], segments: list[str]) -> dict[str, str] | None:
    """`{name}` stands for one segment, `{name:path}` at the end for all that is left."""
    params: dict[str, str] = {}
    for index, part in enumerate(template):
        if part.endswith(":path}"):
            params[part[1:-6]] = unquote("/".join(segments[index:]))
            return params
        if index >= len(segments):
            return None
        if part.startswith("{"):
            if not segments[index]:
                return None
            params[part[1:-1]] = unquote(segments[index])
        elif part != segments[index]:
            return None
    return params if len(segments) == len(template) else None
