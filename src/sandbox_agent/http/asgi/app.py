"""The ASGI app: watch, gate, limits, route, and the one place where errors become answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from sandbox_agent.errors import NotFound, Overloaded, SandboxAgentError, TooMany
from sandbox_agent.http.access.gate import Gate
from sandbox_agent.http.api.removed import find_removed
from sandbox_agent.http.asgi.answers import Answer, give, json_answer, problem_answer
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.problems import Headers, Message, Receive, Scope, Send, send_problem
from sandbox_agent.http.asgi.requests import ClientGone
from sandbox_agent.http.asgi.routes import Door, Place, Route, RouteTable
from sandbox_agent.http.asgi.telemetry import StatusWatch, Telemetry

_log = logging.getLogger(__name__)


class MethodNotAllowed(SandboxAgentError):
    status = 405
    title = "Method not allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppLimits:
    in_flight: int
    """Requests at once, streams included."""
    subscribers: int
    """Streams and WebSockets at once."""


class App:
    def __init__(self, entries: Sequence[Route | Door], gate: Gate, telemetry: Telemetry, limits: AppLimits) -> None:
        self.table = RouteTable(entries)
        self.telemetry = telemetry
        self._exact = self.table.exact
        self._gate = gate
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        telemetry, limits = self.telemetry, self._limits
        place = self._exact.get(scope["path"]) or self.table.find(scope)
        door = place.door if place is not None else None
        watch = StatusWatch(send)
        is_stream = door is not None and _is_stream(scope, door)
        telemetry.in_flight += 1
        telemetry.subscribers += is_stream
        if "repeat" in scope:
            self._count_repeats(scope, place)
        try:
            is_room = telemetry.in_flight <= limits.in_flight and telemetry.subscribers <= limits.subscribers
            if door is not None and is_room and _serves(door, scope) and self._gate.admits(scope):
                await door.app(scope, receive, watch)  # the hot path, without a detour
            else:
                await self._answer(scope, receive, watch, place, is_stream=is_stream)
        except SandboxAgentError as error:
            await _tell(error, scope, watch, has_begun=bool(watch.status))
        except ClientGone:
            pass
        finally:
            telemetry.in_flight -= 1
            telemetry.subscribers -= is_stream
            template = place.template if place is not None else "other"
            telemetry.note(scope, template, watch.status, perf_counter() - watch.started, is_stream=is_stream)

    def _count_repeats(self, scope: Scope, place: Place | None) -> None:
        """What a door leaves for requests that repeat is counted too; with an access log there is no shortcut."""
        remember, telemetry, most = scope.pop("repeat"), self.telemetry, self._limits.in_flight
        if place is not None and not telemetry.logs_access:
            template = place.template
            scope["repeat"] = lambda repeat: remember(telemetry.counting(repeat, template, in_flight=most))

    async def _answer(
        self, scope: Scope, receive: Receive, watch: StatusWatch, place: Place | None, *, is_stream: bool
    ) -> None:
        verdict = self._gate.judge(scope, place)
        send: Send = _adding(watch, verdict.headers) if verdict.headers else watch
        if verdict.answer is not None:
            self.telemetry.refuse(str(verdict.answer.status))
            await give(verdict.answer, scope, send)
            return
        try:
            self._check_limits(is_stream=is_stream)
            await self._route(scope, receive, send, place)
        except SandboxAgentError as error:
            await _tell(error, scope, send, has_begun=bool(watch.status))

    async def _route(self, scope: Scope, receive: Receive, send: Send, place: Place | None) -> None:
        if place is not None and place.door is not None:
            if _serves(place.door, scope):
                await place.door.app(scope, receive, send)
                return
        elif place is not None and scope["type"] == "http" and (route := place.route(scope["method"])) is not None:
            await _serve(route, Exchange(scope, receive, send))
            return
        await give(_unserved(scope, place), scope, send)

    def _check_limits(self, *, is_stream: bool) -> None:
        """Raises Overloaded, TooMany. Whoever asks is counted already."""
        telemetry, limits = self.telemetry, self._limits
        if telemetry.in_flight > limits.in_flight:
            raise Overloaded(f"{limits.in_flight} requests are under way already")
        if is_stream and telemetry.subscribers > limits.subscribers:
            raise TooMany(f"{limits.subscribers} streams are open already")


def _serves(door: Door, scope: Scope) -> bool:
    return door.serves_websocket if scope["type"] == "websocket" else scope["method"] in door.methods


async def _tell(error: SandboxAgentError, scope: Scope, send: Send, *, has_begun: bool) -> None:
    if has_begun:  # too late to say it: the answer ends early, which the peer sees by its length
        _log.warning("answer cut short path=%s problem=%s", scope["path"], error)
        return
    await give(problem_answer(error, instance=scope["path"]), scope, send)


async def _serve(route: Route, exchange: Exchange) -> None:
    try:
        value = await route.handler(exchange)
    except (SandboxAgentError, ClientGone):
        raise
    except Exception:  # noqa: BLE001 - the boundary of a request; logged with its traceback
        _log.exception("request failed route=%s", route.path)
        await send_problem(
            exchange.send, exchange.scope, SandboxAgentError("this failed inside the server; its log says why")
        )
        return
    if value is not None:
        await give(value if isinstance(value, Answer) else json_answer(value), exchange.scope, exchange.send)


def _unserved(scope: Scope, place: Place | None) -> Answer:
    """410 for what the old API had, 405 with Allow for a wrong method, 404 for the rest."""
    path = scope["path"]
    gone = find_removed(scope.get("method", "GET"), path, is_known=place is not None)
    if gone is not None:
        return gone
    if place is None or scope["type"] == "websocket":
        return problem_answer(NotFound(f"nothing is served at {path}"), instance=path)
    refused = problem_answer(MethodNotAllowed(f"{scope['method']} is not served here"), instance=path)
    return Answer(405, refused.body, refused.content_type, ((b"allow", place.allow),))


def _is_stream(scope: Scope, door: Door) -> bool:
    return scope["type"] == "websocket" or scope["method"] in door.streams


def _adding(send: Send, headers: Headers) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.accept", "websocket.http.response.start"}:
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return sending
