"""Connections of clients that want to know where each message stands in its session's history.

A client asks with `clientCapabilities._meta["sandboxagent.dev"].sequences: true`. With the last sequence that it saw,
it goes on at any server that has the session: see `_sandboxagent/session/follow`.
"""

from __future__ import annotations

from typing import TypeVar, cast

from sandbox_agent.core import frames
from sandbox_agent.core.effects import Retold
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionId, StreamKey
from sandbox_agent.core.json_values import as_object, read_json
from sandbox_agent.hub.clients.connection import Connection

C = TypeVar("C", bound=Connection)


class Sequenced(Connection):
    def deliver(self, session: SessionId | None, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        self.deliver_own_lines(session, [_numbered(line, at) for at, line in enumerate(lines, sequence)])

    def deliver_retold(self, session: SessionId, stream: StreamKey, entries: Retold) -> None:
        """The last line of an entry has its number: who has seen less of it goes on before it."""
        numbered = [(at, [*lines[:-1], _numbered(lines[-1], at)] if at else lines) for at, lines in entries]
        super().deliver_retold(session, stream, numbered)


def sequencing(kind: type[C]) -> type[C]:
    """`kind`, for a client that wants sequences."""
    return cast("type[C]", type(f"Sequenced{kind.__name__}", (Sequenced, kind), {}))


def _numbered(line: bytes, sequence: int) -> bytes:
    meta = as_object(as_object(read_json(frames.params_of(line))).get("_meta"))
    ours = {**as_object(meta.get(META)), "sequence": sequence}
    return frames.with_params(line, {"_meta": {**meta, META: ours}})
