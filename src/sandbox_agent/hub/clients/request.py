"""A client's request on its way through the hub."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.route import Client
from sandbox_agent.errors import InvalidParams, RemoteError, SandboxAgentError
from sandbox_agent.hub.clients.connection import Connection

T = TypeVar("T")


class Request(msgspec.Struct, frozen=True):
    connection: Connection
    ticket: int
    frame: Frame
    raw: bytes

    @property
    def method(self) -> str:
        return self.frame.method or ""

    @property
    def behalf(self) -> tuple[Client, bytes]:
        return self.connection.client, self.frame.key

    def params(self) -> dict[str, Any]:
        """All of `params`, decoded. Raises InvalidParams when it is no object."""
        return self.read(dict[str, Any])

    def read(self, shape: type[T]) -> T:
        """`params` as `shape`. Raises InvalidParams naming the field that is wrong."""
        try:
            value: T = frames.decode(frames.params_of(self.raw), shape)
        except msgspec.MsgspecError as error:
            raise InvalidParams(f"params of {self.method}: {error}") from None
        return value

    def meta(self) -> dict[str, Any]:
        """Our own part of `params._meta`."""
        meta = self.params().get("_meta")
        ours = meta.get(META) if isinstance(meta, dict) else None
        return ours if isinstance(ours, dict) else {}

    def answer(self, value: Any, session: SessionId | None = None) -> None:
        self.give(frames.result(self.frame.key, value), session)

    def fail(self, error: SandboxAgentError, session: SessionId | None = None) -> None:
        if isinstance(error, RemoteError):
            body = frames.to_json(error.body)
            self.give(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self.frame.key, body), session)
        else:
            self.give(frames.failure(self.frame.key, error), session)

    def give(self, line: bytes, session: SessionId | None = None) -> None:
        self.connection.reply(self.ticket, line, session or self.frame.session, self.method)
