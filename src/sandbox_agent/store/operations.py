"""What is asked of the database, one value per request, in the form that the journal keeps.

`number` counts requests over the life of a database. The database remembers the number of the last one it has
taken in, so that a journal can be replayed over it any number of times.
"""

from __future__ import annotations

import msgspec

from sandbox_agent.core.ids import SessionKey, StreamKey


class Append(msgspec.Struct, array_like=True, tag="append", gc=False):
    """Lines of one stream, encoded. `first` to `last` are their sequences."""

    number: int
    stream: StreamKey
    first: int
    last: int
    time: float
    body: bytes
    is_loss: bool = False
    """The lines could not be kept: the body is one notice that stands for all of them, at sequence `last`."""

    @property
    def size(self) -> int:
        return len(self.body)


class Drop(msgspec.Struct, array_like=True, tag="drop", gc=False):
    number: int
    stream: StreamKey

    @property
    def size(self) -> int:
        return len(self.stream)


class PutSession(msgspec.Struct, array_like=True, tag="session"):
    """`record` is a SessionRecord in JSON: its open fields come from JSON, and fit nothing narrower."""

    number: int
    key: SessionKey
    record: bytes

    @property
    def size(self) -> int:
        return len(self.record)


class DeleteSession(msgspec.Struct, array_like=True, tag="delete"):
    number: int
    key: SessionKey

    @property
    def size(self) -> int:
        return len(self.key.session)


class PutTurn(msgspec.Struct, array_like=True, tag="turn"):
    number: int
    key: SessionKey
    turn_id: str
    answer: bytes | None

    @property
    def size(self) -> int:
        return len(self.turn_id) + len(self.answer or b"")


Operation = Append | Drop | PutSession | DeleteSession | PutTurn

encode_operation = msgspec.msgpack.Encoder().encode
decode_operation = msgspec.msgpack.Decoder(Operation).decode
