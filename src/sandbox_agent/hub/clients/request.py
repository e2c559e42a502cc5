"""A client's request on its way through the hub."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from sandbox_agent.core import frames, versions
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId, SessionId, SessionName
from sandbox_agent.core.session import Client
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import InvalidParams, RemoteError, SandboxAgentError
from sandbox_agent.hub.clients.connection import Connection

T = TypeVar("T")


class Ours(msgspec.Struct, rename="camel"):
    """What any request that names a session may say under our key in `params._meta`."""

    agent: str | None = None
    turn_id: str | None = None


class _Meta(msgspec.Struct):
    ours: Ours | None = msgspec.field(name=META, default=None)


class _WithMeta(msgspec.Struct):
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


_META_BYTES, _BACKSLASH = META.encode(), ord("\\")
_NOTHING = Ours()


class Asked(msgspec.Struct, frozen=True):
    method: str
    params: dict[str, Any]


class Request(msgspec.Struct, frozen=True):
    connection: Connection
    ticket: int
    frame: Frame
    raw: bytes
    asked: Asked | None = None
    """What the client said, where it speaks another version than the rest of the hub."""
    given: list[bytes] = msgspec.field(default_factory=list)
    """Its answer, once there is one. Work may go on behind it, and be cancelled or fail then: that is no second one."""

    @property
    def method(self) -> str:
        return self.frame.method or ""

    def in_version_1(self) -> Request:
        """The same request as the hub reads it. Raises InvalidParams when its params are no object."""
        params = self.params()
        method, said = versions.request(self.method, params, from_=self.connection.version, to=Version.V1)
        raw = frames.request(self.frame.key, method, said)
        return Request(self.connection, self.ticket, frames.parse(raw), raw, Asked(self.method, params), self.given)

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

    def ours(self) -> Ours:
        """What our part of `params._meta` says that concerns every request. Raises InvalidParams."""
        return read_ours(self.raw, self.method)

    def target(self) -> SessionName:
        """The session that the request names. Raises InvalidParams."""
        if self.frame.session is None:
            raise InvalidParams(f"params of {self.method}: sessionId is missing")
        return named(self.frame.session, self.ours(), self.connection.agent)

    def answer(self, value: Any, session: SessionId | None = None, known: dict[str, Any] | None = None) -> None:
        """`known` is what the session offers, where the answer may not say it."""
        if self.asked is not None:
            value = versions.result(
                self.asked.method,
                value,
                from_=Version.V1,
                to=self.connection.version,
                asked=self.asked.params,
                known=known,
            )
        self.give(frames.result(self.frame.key, value), session)

    def fail(self, error: SandboxAgentError, session: SessionId | None = None) -> None:
        if isinstance(error, RemoteError):
            body = frames.to_json(error.body)
            self.give(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self.frame.key, body), session)
        else:
            where = session or self.frame.session
            self.give(frames.failure(self.frame.key, error, agent=self.connection.agent, session=where), session)

    def give(self, line: bytes, session: SessionId | None = None) -> None:
        if self.given:
            return
        self.given.append(line)
        self.connection.reply(self.ticket, line, session or self.frame.session, self.method)


def says_nothing(raw: bytes) -> bool:
    """Whether a message has surely nothing of ours in it: without an escape our key would stand there as it is."""
    return _META_BYTES not in raw and _BACKSLASH not in raw


def read_ours(raw: bytes, method: str) -> Ours:
    """Our part of `params._meta` in a message of a client. Raises InvalidParams."""
    if says_nothing(raw):
        return _NOTHING
    try:
        meta = frames.decode(frames.params_of(raw), _WithMeta).meta
    except msgspec.MsgspecError as error:
        raise InvalidParams(f"params of {method}: {error}") from None
    return meta.ours if meta is not None and meta.ours is not None else _NOTHING


def named(session: str, ours: Ours, connected_to: AgentId) -> SessionName:
    return SessionName(session, None if ours.agent is None else AgentId(ours.agent), connected_to)
