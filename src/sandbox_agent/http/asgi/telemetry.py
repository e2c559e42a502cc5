"""What is counted about requests while they run: plain numbers, turned into metrics when somebody asks."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left

import msgspec

from sandbox_agent.http.asgi.messages import Abandon, Message, Repeat, Respond, Scope, Send
from sandbox_agent.http.asgi.problems import known_error, problem_response

_access = logging.getLogger("sandbox_agent.access")
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of the latency buckets in seconds."""


class Latency(msgspec.Struct):
    """Times of one kind of request; the last bucket has no upper bound."""

    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0


class Telemetry(msgspec.Struct):
    """`requests` by (method, route, status); `latencies` by (method, route), of answers that do not stay open."""

    logs_access: bool = False
    requests: dict[tuple[str, str, int], int] = msgspec.field(default_factory=dict)
    latencies: dict[tuple[str, str], Latency] = msgspec.field(default_factory=dict)
    in_flight: int = 0
    subscribers: int = 0
    refused: dict[str, int] = msgspec.field(default_factory=dict)

    def note(self, scope: Scope, template: str, status: int, seconds: float, *, is_stream: bool) -> None:
        method = scope.get("method", "WEBSOCKET")
        if method not in _METHODS:
            method = "OTHER"
        key = (method, template, status)
        if is_stream:
            self.requests[key] = self.requests.get(key, 0) + 1
        else:
            self._count(*key, seconds)
        if self.logs_access:
            client = scope.get("client")
            _access.info(
                "%s %s %d %.1fms client=%s",
                method,
                ascii(scope["path"])[1:-1][:500],
                status,
                seconds * 1000,
                client[0] if client else "-",
            )

    def counting(self, repeat: Repeat, template: str, *, in_flight: int) -> Repeat:
        """The same `Repeat`, counted as other requests are; it is left to the plain path when there are too many.

        A request ends once: an answer may still come for a peer that has left."""

        def take(body: bytes, respond: Respond) -> Abandon | None:
            if self.in_flight >= in_flight:
                return None
            started = time.perf_counter()
            is_open = True

            def answer(status: int, headers: bytes, content: bytes) -> None:
                nonlocal is_open
                if is_open:
                    is_open = False
                    self.in_flight -= 1
                    self._count("POST", template, status, time.perf_counter() - started)
                respond(status, headers, content)

            self.in_flight += 1
            try:
                abandon = repeat(body, answer)
            except Exception as error:  # noqa: BLE001 - the boundary of a request; a bug is logged with its traceback
                failed = problem_response(known_error(error, template), instance=template)
                answer(failed.status, failed.header_lines, failed.body)
                return _nobody_waits
            if abandon is None:
                self.in_flight -= 1
                return None

            def leave() -> None:
                nonlocal is_open
                if is_open:
                    is_open = False
                    self.in_flight -= 1
                abandon()

            return leave

        return take

    def _count(self, method: str, template: str, status: int, seconds: float) -> None:
        key = (method, template, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        latency = self.latencies.get(key[:2])
        if latency is None:
            latency = self.latencies[key[:2]] = Latency()
        latency.buckets[bisect_left(BOUNDS, seconds)] += 1
        latency.total += seconds

    def refuse(self, why: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1


def _nobody_waits() -> None:
    """It has been answered."""


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "WEBSOCKET"})


_STATUS = {"websocket.accept": 101}


class StatusWatch:
    """A send that remembers the status, without a coroutine of its own. 101 stands for an accepted WebSocket."""

    __slots__ = ("_send", "started", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.started = time.perf_counter()

    def __call__(self, message: Message):  # type: ignore[no-untyped-def]  # gives on what `send` gives
        if not self.status:
            self.status = message.get("status") or _STATUS.get(message["type"], 0)
        return self._send(message)
