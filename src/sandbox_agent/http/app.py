"""The ASGI app: watch, gate, limits, route; whatever fails below goes to the one edge, `asgi.problems`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter

import msgspec

from sandbox_agent.core.users import OWNER
from sandbox_agent.errors import MethodNotAllowed, NotFound, Overloaded, TooMany
from sandbox_agent.http.access.attendance import Attendance
from sandbox_agent.http.access.gate import Gate
from sandbox_agent.http.api.removed import find_removed
from sandbox_agent.http.asgi.exchange import Exchange, user_of
from sandbox_agent.http.asgi.messages import (
    Headers,
    Message,
    Receive,
    Response,
    Scope,
    Send,
    json_response,
    send_response,
)
from sandbox_agent.http.asgi.problems import answer_failure, problem_response
from sandbox_agent.http.asgi.routes import Door, Endpoint, Place, RouteTable
from sandbox_agent.http.asgi.telemetry import StatusWatch, Telemetry


class AppLimits(msgspec.Struct, frozen=True, kw_only=True):
    in_flight: int
    """Requests at once, streams included."""
    subscribers: int
    """Streams and WebSockets at once."""


class App:
    def __init__(
        self,
        entries: Sequence[Endpoint | Door],
        gate: Gate,
        telemetry: Telemetry,
        limits: AppLimits,
        attendance: Attendance,
        elsewhere: Callable[[Scope, Receive, Send], Awaitable[bool]],
    ) -> None:
        """`elsewhere` answers what is for another node, and says whether it was."""
        self._elsewhere = elsewhere
        self._attendance = attendance
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
        is_stream = place is not None and place.is_stream(scope)
        telemetry.in_flight += 1
        telemetry.subscribers += is_stream
        if "repeat" in scope:
            self._count_repeats(scope, place)
        answer: Send = watch
        try:
            is_room = telemetry.in_flight <= limits.in_flight and telemetry.subscribers <= limits.subscribers
            if door is not None and is_room and _serves(door, scope) and self._gate.admits(scope) is OWNER:
                if "admitted" in scope:
                    scope["admitted"]()
                await door.app(scope, receive, watch)  # the hot path, without a detour
            else:
                admission = self._gate.judge(scope, place)
                if admission.headers:
                    answer = _adding(watch, admission.headers)
                if admission.response is None:
                    user = admission.user
                    if user is not None and "admitted" in scope:
                        scope["admitted"]()
                    self._check_limits(is_stream=is_stream)
                    if user is None or user is OWNER:
                        await self._route(place, scope, receive, answer)
                    elif admission.is_node:
                        scope["user"] = user
                        await self._route(place, scope, receive, answer)
                    else:
                        scope["user"] = user
                        await self._attendance.serve(user, partial(self._route, place), scope, receive, answer)
                else:
                    telemetry.refuse(str(admission.response.status))
                    await send_response(admission.response, scope, answer)
        except Exception as error:  # noqa: BLE001 - the boundary of a request; a bug is logged with its traceback
            await answer_failure(error, scope, answer, has_begun=bool(watch.status))
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

    async def _route(self, place: Place | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Forbidden for one whose token has not the right to come here."""
        if place is not None:
            user_of(scope).require(place.needs(scope), f"{scope.get('method', 'GET')} {place.template}")
        if place is not None and place.door is not None:
            if _serves(place.door, scope):
                await place.door.app(scope, receive, send)
                return
        elif (
            place is not None and scope["type"] == "http" and (endpoint := place.endpoint(scope["method"])) is not None
        ):
            if not await self._elsewhere(scope, receive, send):
                await _answer(endpoint, Exchange(scope, receive, send))
            return
        await send_response(_unserved(scope, place), scope, send)

    def _check_limits(self, *, is_stream: bool) -> None:
        """Raises Overloaded, TooMany. Whoever asks is counted already."""
        telemetry, limits = self.telemetry, self._limits
        if telemetry.in_flight > limits.in_flight:
            raise Overloaded(f"request limit ({limits.in_flight}) reached; try again later")
        if is_stream and telemetry.subscribers > limits.subscribers:
            raise TooMany(f"stream limit ({limits.subscribers}) reached; close a stream or raise max_subscribers")


async def _answer(endpoint: Endpoint, exchange: Exchange) -> None:
    value = await endpoint.handler(exchange)
    if value is not None:
        response = value if isinstance(value, Response) else json_response(value)
        await send_response(response, exchange.scope, exchange.send)


def _serves(door: Door, scope: Scope) -> bool:
    return door.serves_websocket if scope["type"] == "websocket" else scope["method"] in door.methods


def _unserved(scope: Scope, place: Place | None) -> Response:
    """410 for what the old API had, 405 with Allow for a wrong method, 404 for the rest."""
    path = scope["path"]
    gone = find_removed(scope.get("method", "GET"), path, is_known=place is not None)
    if gone is not None:
        return gone
    if place is None or scope["type"] == "websocket":
        return problem_response(NotFound(f"no such page or endpoint: {path}"), instance=path)
    refused = problem_response(
        MethodNotAllowed(f"{scope['method']} is not allowed at {path}; allowed: {place.allow.decode()}"), instance=path
    )
    return refused.adding((b"allow", place.allow))


def _adding(send: Send, headers: Headers) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.accept", "websocket.http.response.start"}:
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return sending
