"""One request of an OpenCode client: its directory, query and body, parsed here and trusted afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.users import User
from sandbox_agent.errors import InvalidParams
from sandbox_agent.http.asgi.exchange import header, media_type, read_body, user_of
from sandbox_agent.http.asgi.messages import Receive, Scope, Send
from sandbox_agent.http.doors.opencode.errors import InvalidQuery

T = TypeVar("T")
_DIRECTORY = b"x-opencode-directory"
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
_FIELDS = 100
_PATH = re.compile(r"(at `\$(?P<path>[^`]*)`)?\Z")


@dataclass(frozen=True, slots=True)
class Call:
    scope: Scope
    receive: Receive
    send: Send
    path: dict[str, str]
    """What the braces of the route stand for."""
    agent: AgentId | None
    """The agent that this client prefers, by its address."""
    body_limit: int

    @property
    def user(self) -> User:
        """Who asks."""
        return user_of(self.scope)

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    def query(self, name: str) -> str | None:
        """One value of the query. Given twice, the last counts, as in OpenCode. Raises InvalidParams."""
        raw: bytes = self.scope["query_string"]
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
        except ValueError as error:
            raise InvalidQuery(f"query: {error}") from None
        return dict(pairs).get(name)

    def number(self, name: str, *, low: int, high: int) -> int | None:
        """Raises InvalidParams."""
        given = self.query(name)
        if given is None or given == "":
            return None
        try:
            value = int(float(given))
        except (ValueError, OverflowError):
            raise InvalidQuery(f"query: {name} must be a number, not {given[:80]!r}") from None
        return max(low, min(value, high))

    @property
    def directory(self) -> str | None:
        """The directory that the client works in, if it says so: the query wins. Raises InvalidParams."""
        given = self.query("directory") or self.query("location[directory]")
        if not given:
            sent = header(self.scope, _DIRECTORY)
            given = unquote(sent, errors="strict") if sent else None
        if not given:
            return None
        if "\0" in given or not Path(given).is_absolute():
            raise InvalidParams(f"directory must be an absolute path, not {given[:200]!r}")
        return str(Path(given))

    async def body(self, shape: type[T]) -> T:
        """The body as `shape`; an absent one reads as `{}`. Raises InvalidParams, TooLarge, ClientGone."""
        media = media_type(header(self.scope, b"content-type"))
        raw = await read_body(self.scope, self.receive, self.body_limit)
        if raw and media in _FORMS:
            raise InvalidParams(f"Content-Type {media!r} is not supported; send application/json")
        try:
            return msgspec.json.decode(raw or b"{}", type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidParams(f"body: {error}") from None


class Nothing(msgspec.Struct):
    """A body that says nothing that we use."""
