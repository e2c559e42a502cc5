"""Server-sent events out of bytes, without IO."""

from __future__ import annotations

from dataclasses import dataclass, field

_LONGEST_NUMBER = 19
"""Digits. What is longer is no number of ours, and Python refuses to read one of thousands."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    id: int | None
    data: bytes
    kind: str = "message"
    position: str = field(default="", compare=False)
    """The id as it was sent: that of the server-wide feed is no number."""


class EventParser:
    """Feed it what arrives; it gives the events that are complete. Comments and half events give nothing."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        return [event for event in map(_read_block, blocks) if event is not None]


def _read_block(block: bytes) -> ServerEvent | None:
    event_id: int | None = None
    kind, position = "message", ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ").removesuffix(b"\r")
        if name == b"data":
            data.append(value)
        elif name == b"id":
            position = value.decode("utf-8", errors="replace")
            event_id = int(value) if value.isdigit() and len(value) <= _LONGEST_NUMBER else event_id
        elif name == b"event":
            kind = value.decode("utf-8", errors="replace")
    return ServerEvent(event_id, b"\n".join(data), kind, position) if data else None
