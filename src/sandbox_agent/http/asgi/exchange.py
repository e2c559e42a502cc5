"""One request: its headers, its query and its body as typed values, read with limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from sandbox_agent.core.users import OWNER, User
from sandbox_agent.errors import (
    ClientError,
    ClientGone,
    InvalidParams,
    NotAcceptable,
    TooLarge,
    UnsupportedMediaType,
)
from sandbox_agent.http.asgi.messages import Receive, Scope, Send

T = TypeVar("T")
_JSON_LIMIT = 1 << 20
_FORM_TYPES = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
"""What a page of another origin may send without asking first."""


class Exchange(msgspec.Struct, frozen=True):
    scope: Scope
    receive: Receive
    send: Send

    @property
    def is_head(self) -> bool:
        return bool(self.scope["method"] == "HEAD")

    @property
    def user(self) -> User:
        """Who asks."""
        return user_of(self.scope)

    def path(self, name: str) -> str:
        value: str = self.scope["path_params"][name]
        return value

    def header(self, name: bytes) -> str | None:
        return header(self.scope, name)

    def query(self, shape: type[T]) -> T:
        """The query as `shape`. Raises InvalidParams naming what is wrong: twice, of a wrong type, not UTF-8."""
        values = query_values(self.scope["query_string"])
        try:
            return msgspec.convert(values, shape, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidParams(f"query: {error}") from None

    async def json(self, shape: type[T]) -> T:
        """The body as `shape`. Raises UnsupportedMediaType, InvalidParams, TooLarge."""
        require_json(self.scope)
        raw = await read_body(self.scope, self.receive, _JSON_LIMIT)
        try:
            return msgspec.json.decode(raw, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidParams(f"body: {error}") from None

    def refuse_forms(self) -> None:
        """Raise UnsupportedMediaType for a body that any web page could have sent."""
        media = media_type(self.header(b"content-type"))
        if media in _FORM_TYPES:
            raise UnsupportedMediaType(
                f"Content-Type {media!r} is not supported here; send application/json or no body"
            )

    async def body(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ClientGone when the peer leaves before its end."""
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            if piece := message.get("body"):
                yield piece
            if not message.get("more_body"):
                return


def user_of(scope: Scope) -> User:
    """Who sent a request, as the gate has found."""
    user: User = scope.get("user", OWNER)
    return user


def media_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def query_values(raw: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except UnicodeDecodeError:
        raise InvalidParams("query: invalid UTF-8") from None
    except ValueError as error:
        raise InvalidParams(f"query: {error}") from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise InvalidParams(f"query: parameter {name[:100]!r} is given more than once")
        values[name] = value
    return values


def header(scope: Scope, name: bytes) -> str | None:
    """One header's value; None if it is absent. Raises ClientError when it is there more than once."""
    found = [value for key, value in scope["headers"] if key == name]
    if not found:
        return None
    if len(found) > 1:
        raise ClientError(f"header {name.decode()} is given {len(found)} times; send it once")
    value: bytes = found[0]
    return value.decode("latin-1")


def last_event_id(scope: Scope) -> int | None:
    """Where a reader wants to go on; None when it does not say. Raises InvalidParams."""
    value = header(scope, b"last-event-id")
    return None if value is None else event_id(value)


def event_id(value: str) -> int:
    """Raises InvalidParams for what is no event id."""
    if not value.isascii() or not value.isdigit() or len(value) > 18:
        raise InvalidParams(f"Last-Event-ID must be a non-negative integer, not {value!r}")
    return int(value)


def require_json(scope: Scope) -> None:
    """Raises UnsupportedMediaType for a body that is not declared as JSON."""
    content_type = header(scope, b"content-type")
    media = (content_type or "").partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise UnsupportedMediaType(f"Content-Type must be application/json, not {content_type!r}")


def require_accept(scope: Scope, offered: str) -> None:
    """Raises NotAcceptable when `Accept` is there and excludes what we would send."""
    accept = ", ".join(value.decode("latin-1") for key, value in scope["headers"] if key == b"accept")
    if not accept.strip():
        return
    family = offered.partition("/")[0] + "/*"
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        is_refused = any(p.replace(" ", "") in {"q=0", "q=0.0", "q=0.00", "q=0.000"} for p in parameters)
        if media in {offered, family, "*/*"} and not is_refused:
            return
    raise NotAcceptable(f"Accept {accept!r} does not include {offered}")


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises TooLarge before more than `limit` bytes are held, ClientGone."""
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise TooLarge(f"a body of {declared} bytes is over the limit of {limit}")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise TooLarge(f"the body is over the limit of {limit} bytes")
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)
