"""Shortcuts past ASGI: for requests that repeat on a socket, and for events that somebody waits for.

Of a request that repeats nothing is parsed twice, no task is made, no ASGI message passed.

A client that drives an agent sends the same head again and again, with another body. The first time, it takes the
plain path: uvicorn, the gate, the limits, the door. A door that has answered may leave a `Repeat` behind, by calling
`scope["repeat"]`. When the next request on that socket begins with the same bytes, but for the Content-Length, its
body is handed to the `Repeat` once it has come whole. Whatever is out of the ordinary takes the plain path, the only
one that knows errors, limits, slow clients and `Expect`. What a browser sends (a cookie, an origin) is never
remembered.

A response whose body is being sent may be given another piece of it by calling `scope["push"]`, without a turn of the
loop: that is for one event for one who waits. Who may have to wait for the peer sends as usual.

This leans on the inside of uvicorn's protocol class: see docs/adr/0005-direct-http.md for why, and on what.
"""

from __future__ import annotations

import re
import weakref
from functools import partial
from typing import Any

from sandbox_agent.http.asgi.messages import Abandon, Repeat
from sandbox_agent.http.server.uvicorn_parts import STATUS_LINE, RequestResponseCycle
from sandbox_agent.http.server.wire import BoundedProtocol

BODY_LIMIT = 256 * 1024
_HEAD = re.compile(
    rb"(POST [^\n]+ HTTP/1\.1\r\n(?:[^\n]+\r\n)*?content-length: ?)\d{1,9}(\r\n(?:[^\n]+\r\n)*\r\n)", re.IGNORECASE
)
_NOT_REMEMBERED = re.compile(
    rb"\n(?:(?:cookie|origin|expect|upgrade|transfer-encoding):|connection:(?! ?keep-alive\r))", re.IGNORECASE
)


class DirectProtocol(BoundedProtocol):
    """One socket. `_repeat` takes the body of a request that is `_before`, its length, `_after`, and that body."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._repeat: Repeat | None = None
        self._before = self._after = b""
        self._is_between = True
        """The parser has seen the end of the last request, and nothing of another."""
        self._chunk = b""
        self._held = b""
        """A repeated request of which more is to come."""
        self._direct: _DirectCycle | None = None
        self._answered = 0.0

    def data_received(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
        if self._is_between:
            if self._repeat is not None and self._is_taken(data, self._repeat):
                return
            self._chunk = data
        super().data_received(data)
        self._chunk = b""

    def on_message_begin(self) -> None:
        self._is_between = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        chunk, self._chunk = self._chunk, b""
        if chunk:
            self.scope["repeat"] = partial(self._remember, chunk)  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.scope is self.scope:
            self.scope["push"] = partial(_push, weakref.ref(self.cycle))  # type: ignore[typeddict-unknown-key]

    def on_message_complete(self) -> None:
        self._is_between = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        direct, self._direct, self._repeat = self._direct, None, None
        if direct is not None and direct.abandon is not None:
            direct.abandon()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """uvicorn's timer was set before the requests that went directly."""
        if self._held:  # it comes slowly: that is for the plain path
            held, self._held, self._repeat = self._held, b"", None
            self.data_received(held)
            return
        idle = 0.0 if self._direct is not None else self.loop.time() - self._answered
        if idle >= self.timeout_keep_alive:
            super().timeout_keep_alive_handler()
        else:
            wait = self.timeout_keep_alive - idle
            self.timeout_keep_alive_task = self.loop.call_later(wait, self.timeout_keep_alive_handler)

    def direct_answered(self) -> None:
        self._direct = None
        self._answered = self.loop.time()
        if self.pipeline:
            self.on_response_complete()

    def _remember(self, chunk: bytes, repeat: Repeat) -> None:
        found = _HEAD.match(chunk)
        if found is not None and not _NOT_REMEMBERED.search(found[0]) and not self.transport.is_closing():
            self._before, self._after = found[1], found[2]
            self._repeat = repeat

    def _is_taken(self, data: bytes, repeat: Repeat) -> bool:
        """Whether `data` repeats what is known, and is answered or held here."""
        if not data.startswith(self._before) or self.flow.write_paused or self.transport.is_closing():
            return False
        if self.cycle is not None and not self.cycle.response_complete:
            return False
        start = len(self._before)
        end = data.find(b"\r", start, start + 10)
        length = data[start:end]
        if end < 0 or not length.isdigit() or not data.startswith(self._after, end):
            return False
        body = end + len(self._after)
        missing = body + int(length) - len(data)
        if missing == 0:
            return self._is_answered(data[body:], repeat)
        if missing > 0 and int(length) <= BODY_LIMIT:
            self._held = data
        return self._held != b""

    def _is_answered(self, body: bytes, repeat: Repeat) -> bool:
        before = self.cycle
        self._direct = self.cycle = cycle = _DirectCycle(self)  # type: ignore[assignment]
        abandon = repeat(body, cycle.respond)
        if abandon is None:
            self._direct, self.cycle = None, before
            return False
        if not cycle.response_complete:
            cycle.abandon = abandon
        return True


def _push(response: weakref.ref[RequestResponseCycle], content: bytes) -> bool:
    cycle = response()  # it refers to the scope that refers to us
    if cycle is None or cycle.flow.write_paused:
        return False
    if cycle.disconnected or cycle.response_complete or not cycle.chunked_encoding:
        return False
    cycle.transport.write(b"%x\r\n%b\r\n" % (len(content), content))
    return True


class _DirectCycle:
    """Stands where uvicorn has its RequestResponseCycle while a repeated request is being answered."""

    __slots__ = ("_protocol", "abandon", "disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self, protocol: DirectProtocol) -> None:
        self._protocol = protocol
        self.abandon: Abandon | None = None
        self.disconnected = False
        self.keep_alive = True
        self.message_event = _NOBODY_WAITS
        self.response_complete = False

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        protocol = self._protocol
        if self.response_complete or protocol.transport.is_closing():
            return
        self.response_complete = True
        self.abandon = None  # it leads back to us: the collector would have to find both
        if not self.keep_alive:
            headers += b"connection: close\r\n"
        protocol.transport.write(
            b"%b%b%bcontent-length: %d\r\n\r\n%b"
            % (STATUS_LINE[status], _default_headers.join(protocol), headers, len(body), body)
        )
        if not self.keep_alive:
            protocol.transport.close()
        protocol.direct_answered()


class _NobodyWaits:
    def set(self) -> None:
        pass


class _DefaultHeaders:
    """uvicorn makes a new list once a second, with the new date; it is joined once."""

    def __init__(self) -> None:
        self._known: list[tuple[bytes, bytes]] = []
        self._joined = b""

    def join(self, protocol: DirectProtocol) -> bytes:
        headers = protocol.server_state.default_headers
        if headers is not self._known:
            self._known = headers
            self._joined = b"".join(b"%b: %b\r\n" % header for header in headers)
        return self._joined


_NOBODY_WAITS = _NobodyWaits()
_default_headers = _DefaultHeaders()
