"""One request on its way to an endpoint: its path, its query and its body as typed values."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from sandbox_agent.errors import InvalidParams, UnsupportedMediaType
from sandbox_agent.http.asgi.problems import Receive, Scope, Send
from sandbox_agent.http.asgi.requests import ClientGone, header, read_body, require_json

T = TypeVar("T")
_JSON_LIMIT = 1 << 20
_FORM_TYPES = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
"""What a page of another origin may send without asking first."""


@dataclass(frozen=True, slots=True)
class Exchange:
    scope: Scope
    receive: Receive
    send: Send

    @property
    def is_head(self) -> bool:
        return bool(self.scope["method"] == "HEAD")

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
            raise UnsupportedMediaType(f"Content-Type {media!r} is not taken here")

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


def media_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def query_values(raw: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except UnicodeDecodeError:
        raise InvalidParams("query: not UTF-8") from None
    except ValueError as error:
        raise InvalidParams(f"query: {error}") from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise InvalidParams(f"query: {name[:100]!r} is there more than once")
        values[name] = value
    return values
