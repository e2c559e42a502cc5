"""What goes over a link between two nodes: a head in JSON on the first line, messages of the conversation behind it.

A link has channels, one for each connection of a client that uses sessions of the other node. The node with the client
opens them and says what the client says; the node with the sessions tells what the client is to be told.

Nodes of neighbouring releases understand each other: messages only get more members, at their end and with defaults.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.errors import MalformedMessage

WINDOW = 1 << 20
"""Bytes that may be said on a channel before the other side has taken them."""
FORM_HEADER = "Sandbox-Agent-Link"
FORM = 2
"""What the node with the sessions says that it tells, when it takes a link. 1, which is not said: translations come
without their place in the history, as nodes of 0.2 tell them."""


class Open(msgspec.Struct, frozen=True, array_like=True, tag="open"):
    """A client, as it introduced itself in the words of version 1, and the user that it is."""

    channel: int
    agent: str
    capabilities: dict[str, Any]
    client_info: dict[str, Any]
    version: int
    user: str | None
    right: int


class Say(msgspec.Struct, frozen=True, array_like=True, tag="say"):
    """One message of the client follows."""

    channel: int


class Close(msgspec.Struct, frozen=True, array_like=True, tag="close"):
    channel: int


class Took(msgspec.Struct, frozen=True, array_like=True, tag="took"):
    """So many more bytes of what was said have been passed on."""

    channel: int
    size: int


class Run(msgspec.Struct, frozen=True, array_like=True):
    """`count` neighbouring lines. With a `sequence` they are entries of a session's history from there on; without
    any lines, that is where the client joined it. With an `entry` they are the entries from there on in the client's
    version of ACP, one line each; unless `left` says that all are of this one entry, and how many more of it follow."""

    count: int
    agent: str = ""
    session: str | None = None
    sequence: int = 0
    entry: int = 0
    left: int | None = None


class Told(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """Lines for the client follow, one per line."""

    channel: int
    runs: list[Run]


class Over(msgspec.Struct, frozen=True, array_like=True, tag="over"):
    """The channel could not be opened, or has ended."""

    channel: int
    reason: str


Head = Open | Say | Close | Took | Told | Over
_decode = msgspec.json.Decoder(Head).decode
_encode = msgspec.json.Encoder().encode


def encode(head: Head, body: bytes = b"") -> bytes:
    return b"%b\n%b" % (_encode(head), body)


def decode(message: bytes) -> tuple[Head, bytes]:
    """Raises MalformedMessage."""
    head, _, body = message.partition(b"\n")
    try:
        return _decode(head), body
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"not a message of a link: {error}") from None
