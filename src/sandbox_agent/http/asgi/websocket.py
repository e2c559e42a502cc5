"""WebSocket manners: close codes, subprotocols, messages as bytes."""

from __future__ import annotations

import asyncio
import enum

from sandbox_agent.errors import (
    ClientError,
    MalformedMessage,
    SandboxAgentError,
    ShuttingDown,
    TooLarge,
    UnknownConnection,
)
from sandbox_agent.http.asgi.messages import Headers, Message, Scope, Send

SUBPROTOCOL = "bearer."
"""A WebSocket of a browser may offer `bearer.TOKEN` as a subprotocol, as it cannot set headers."""


STALL = 60.0
"""Seconds in which a peer must take something of what it is sent."""


class Stalled(OSError):
    """A peer that took nothing for long: nobody is there to be told."""


class Close(enum.IntEnum):
    """Codes below 3000 are of RFC 6455, those from 3000 on are registered with IANA."""

    NORMAL = 1000
    POLICY = 1008
    NOT_JSON_RPC = 1007
    TOO_LARGE = 1009
    INTERNAL_ERROR = 1011
    GOING_AWAY = 1001
    BAD_GATEWAY = 1014
    TAKEN_OVER = 4409
    UNKNOWN_CONNECTION = 4404
    BAD_REQUEST = 4400
    STALLED = 3008


_CODES: tuple[tuple[type[SandboxAgentError], Close], ...] = (
    (UnknownConnection, Close.UNKNOWN_CONNECTION),
    (TooLarge, Close.TOO_LARGE),
    (MalformedMessage, Close.NOT_JSON_RPC),
    (ClientError, Close.BAD_REQUEST),
    (ShuttingDown, Close.GOING_AWAY),
)


def agreed_subprotocol(scope: Scope) -> str | None:
    """Browsers end a socket whose server picks none of those offered; the one with the token comes last."""
    offered: list[str] = sorted(scope["subprotocols"], key=lambda name: str(name).startswith(SUBPROTOCOL))
    return offered[0] if offered else None


async def accept(send: Send, scope: Scope, headers: Headers) -> None:
    await send({"type": "websocket.accept", "subprotocol": agreed_subprotocol(scope), "headers": headers})


async def send_within(send: Send, message: Message, seconds: float = STALL) -> None:
    """Send one message. Raises Stalled for a peer that takes nothing for so long."""
    try:
        async with asyncio.timeout(seconds):
            await send(message)
    except TimeoutError:
        raise Stalled from None


async def gone(scope: Scope) -> None:
    """Return when the socket is lost, also while nobody receives from it: what its peer sent last may take for ever.

    Our own server tells; where it does not, this never returns."""
    lost: asyncio.Event = scope.get("gone") or asyncio.Event()
    await lost.wait()


async def close(send: Send, code: Close, reason: str) -> None:
    """Close with a reason, cut to the 123 bytes that a close frame can hold."""
    short = reason.encode()[:123].decode(errors="ignore")
    await send({"type": "websocket.close", "code": int(code), "reason": short})


def close_code(error: SandboxAgentError) -> Close:
    """The code that tells what kind of error ended the socket."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return Close.INTERNAL_ERROR


def payload(message: Message, limit: int) -> bytes:
    """What a text or binary message holds. Raises TooLarge."""
    text = message.get("text")
    content: bytes = text.encode() if text is not None else message.get("bytes") or b""
    if len(content) > limit:
        raise TooLarge(f"a message of {len(content)} bytes is over the limit of {limit}")
    return content
