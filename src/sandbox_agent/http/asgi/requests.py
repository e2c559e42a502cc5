"""Reading a request: headers, media types, a body with a limit."""

from __future__ import annotations

from sandbox_agent.errors import ClientError, InvalidParams, NotAcceptable, TooLarge, UnsupportedMediaType
from sandbox_agent.http.asgi.problems import Receive, Scope


class ClientGone(Exception):
    """The peer went away before it had sent everything."""


def header(scope: Scope, name: bytes) -> str | None:
    """One header's value; None if it is absent. Raises ClientError when it is there more than once."""
    found = [value for key, value in scope["headers"] if key == name]
    if not found:
        return None
    if len(found) > 1:
        raise ClientError(f"header {name.decode()} is there {len(found)} times")
    value: bytes = found[0]
    return value.decode("latin-1")


def last_event_id(scope: Scope) -> int | None:
    """Where a reader wants to go on; None when it does not say. Raises InvalidParams."""
    value = header(scope, b"last-event-id")
    return None if value is None else event_id(value)


def event_id(value: str) -> int:
    """Raises InvalidParams for what is no event id."""
    if not value.isascii() or not value.isdigit() or len(value) > 18:
        raise InvalidParams(f"Last-Event-ID must be a whole number, not {value!r}")
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
    raise NotAcceptable(f"Accept {accept!r} excludes {offered}")


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
