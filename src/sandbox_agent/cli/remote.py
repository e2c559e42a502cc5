"""A connection to a server's `/v1/rpc` that lives through broken sockets and restarts of the server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.methods import CANCEL_REQUEST, EXTENSION_PREFIX
from sandbox_agent.errors import AgentTimeout, InvalidParams, MalformedMessage, SandboxAgentError

_CONNECTION = "X-ACP-Connection-Id"
_JSON = {"Content-Type": "application/json"}
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_SILENCE = 60.0
"""The server sends a heartbeat every 15 s: a stream without any for this long is dead."""
_ANSWERED_IN = 120.0
_NAMING = frozenset({"session/new", "session/fork"})
_JOINING = frozenset({"session/load", "session/resume", "session/prompt"})
_LEAVING = frozenset({"session/close", "session/delete"})

Deliver = Callable[[list[bytes]], Awaitable[None]]


class ConnectionLost(Exception):
    """The server does not know our connection: it was restarted."""


class _Params(msgspec.Struct):
    meta: dict[str, dict[str, Any] | None] = msgspec.field(name="_meta", default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pending:
    raw: bytes
    method: str
    session: str | None


class Remote:
    """`deliver` gets every line for the client, in order.

    After a restart of the server the handshake is made anew, sessions are resumed, and requests without an answer
    are sent again; a prompt carries a turn id, so that it runs once. Notifications of ours are only for clients
    whose handshake has our part of `_meta`: others complain of them. A request that cannot be sent for `patience`
    seconds is answered with an error."""

    def __init__(self, http: httpx.AsyncClient, agent: str, deliver: Deliver, *, patience: float = 60.0) -> None:
        self._http = http
        self._agent = agent
        self._deliver = deliver
        self._patience = patience
        self._handshake = b""
        self._connection_id: str | None = None
        self._generation = 0
        self._last_event = 0
        self._recovering = asyncio.Lock()
        self._pending: dict[bytes, _Pending] = {}
        self._asked: set[bytes] = set()
        self._knows_extensions = False
        self._connected = asyncio.Event()
        self._sessions: dict[str, dict[str, Any]] = {}

    async def send(self, raw: bytes) -> None:
        """Take one message of the client."""
        try:
            frame = frames.parse(raw)
        except MalformedMessage as error:
            await self._deliver([frames.failure(b"null", error)])
            return
        try:
            if frame.is_request:
                await self._request(frame, raw)
            elif frame.is_answer:
                await self._answer(frame, raw)
            elif self._connection_id is not None:
                await self._post(raw)
        except (SandboxAgentError, msgspec.MsgspecError) as error:
            self._pending.pop(frame.key, None)
            if frame.is_request:
                known = error if isinstance(error, SandboxAgentError) else InvalidParams(str(error))
                await self._deliver([frames.failure(frame.key, known)])

    async def follow(self) -> None:
        """Deliver what the server sends, for ever."""
        await self._connected.wait()
        wait = _FIRST_WAIT
        while True:
            async with self._recovering:
                generation = self._generation
            with contextlib.suppress(httpx.HTTPError, SandboxAgentError):
                try:
                    async for event, lines in self._events():
                        wait = _FIRST_WAIT
                        self._last_event = event
                        await self._deliver([shown for line in lines if (shown := self._noted(line)) is not None])
                except ConnectionLost:
                    await self._recover(generation)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def close(self) -> None:
        if self._connection_id is not None:
            with contextlib.suppress(httpx.HTTPError):
                await self._http.delete("/v1/rpc", headers={_CONNECTION: self._connection_id}, timeout=2.0)

    async def _request(self, frame: Frame, raw: bytes) -> None:
        method = frame.method or ""
        if method == "initialize":
            await self._initialize(frame, raw)
            return
        if self._connection_id is None:
            raise MalformedMessage(f"initialize comes first, not {method}")
        if method == "session/prompt":
            raw = _with_turn(raw)
        if method in _JOINING and frame.session is not None:
            self._join(frame.session, raw)
        generation = self._generation
        self._pending[frame.key] = _Pending(raw, method, frame.session)
        await self._post(raw, asked_in=generation)

    async def _initialize(self, frame: Frame, raw: bytes) -> None:
        self._knows_extensions = META in msgspec.json.decode(frames.params_of(raw), type=_Params).meta
        self._handshake = _with_agent(raw, self._agent)
        self._connection_id, answer = await self._persist(self._shake_hands)
        self._connected.set()
        await self._deliver([answer])

    async def _answer(self, frame: Frame, raw: bytes) -> None:
        """To a question of the server. One that an earlier server asked is nobody's any more."""
        if frame.key in self._asked:
            self._asked.discard(frame.key)
            await self._post(frames.with_id(raw, _asked_by_server(frame.key)))

    async def _post(self, raw: bytes, *, asked_in: int | None = None) -> None:
        """Send until the server has it. A request of an earlier generation has been sent again meanwhile."""

        async def attempt() -> None:
            generation = self._generation
            if asked_in is not None and generation != asked_in:
                return
            try:
                await self._post_once(raw)
            except ConnectionLost:
                await self._recover(generation)
                if asked_in is None:
                    await self._post_once(raw)

        await self._persist(attempt)

    async def _post_once(self, raw: bytes, connection_id: str | None = None, prefer: str = "respond-async") -> None:
        headers = {**_JSON, _CONNECTION: connection_id or self._connection_id or "", "Prefer": prefer}
        _checked(await self._http.post("/v1/rpc", content=raw, headers=headers, timeout=_ANSWERED_IN))

    async def _persist(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        """Try until it works. Raises AgentTimeout when the server cannot be reached for too long."""
        wait, deadline = _FIRST_WAIT, time.monotonic() + self._patience
        while True:
            try:
                return await attempt()
            except (httpx.HTTPError, ConnectionLost) as error:
                if time.monotonic() + wait > deadline:
                    raise AgentTimeout(f"cannot reach {self._http.base_url}: {error or type(error).__name__}") from None
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _shake_hands(self) -> tuple[str, bytes]:
        """A new connection, and the server's answer."""
        sent = await self._http.post("/v1/rpc", content=self._handshake, headers=_JSON, timeout=_ANSWERED_IN)
        return _checked(sent).headers[_CONNECTION], sent.content

    async def _recover(self, generation: int) -> None:
        """Make a new connection in place of the one of that generation, once for all who ask."""
        async with self._recovering:
            if self._generation != generation:
                return
            new, _ = await self._shake_hands()
            for session, params in list(self._sessions.items()):
                resume = frames.request(b'"resume"', "session/resume", {**params, "sessionId": session})
                await self._post_once(resume, new, prefer="wait")
            for pending in list(self._pending.values()):
                await self._post_once(pending.raw, new)
            withdrawn, self._asked = self._asked, set()
            self._connection_id, self._last_event = new, 0
            self._generation += 1
            await self._deliver([_withdrawal(key) for key in withdrawn])

    async def _events(self) -> AsyncIterator[tuple[int, list[bytes]]]:
        """The stream's lines in bursts, each with the id of its last event. Raises ConnectionLost, TimeoutError."""
        headers = {_CONNECTION: self._connection_id or "", "Accept": "text/event-stream"}
        headers["Last-Event-ID"] = str(self._last_event)
        limits = httpx.Timeout(_SILENCE)
        async with self._http.stream("GET", "/v1/rpc", headers=headers, timeout=limits) as response:
            _checked(response)
            rest = b""
            async for chunk in response.aiter_bytes():
                *blocks, rest = (rest + chunk).split(b"\n\n")
                events = [block for block in blocks if not block.startswith(b":")]
                if events:
                    last = int(events[-1].split(b"\n", 2)[1].removeprefix(b"id: "))
                    yield last, [event.split(b"\n", 2)[2].removeprefix(b"data: ") for event in events]

    def _noted(self, line: bytes) -> bytes | None:
        """The line as the client is to see it, if it is; what it means for later is remembered."""
        frame = frames.parse(line)
        if frame.is_request:
            key = self._asked_of_client(frame.key)
            self._asked.add(key)
            return frames.with_id(line, key)
        if frame.method == CANCEL_REQUEST and self._generation:
            key = frames.to_json(msgspec.json.decode(frames.params_of(line)).get("requestId"))
            return _withdrawal(self._asked_of_client(key))
        if frame.is_answer:
            self._settle(frame, line)
        elif not self._knows_extensions and (frame.method or "").startswith(EXTENSION_PREFIX):
            return None
        return line

    def _settle(self, frame: Frame, line: bytes) -> None:
        pending = self._pending.pop(frame.key, None)
        if pending is None or frame.is_error:
            return
        if pending.method in _LEAVING:
            self._sessions.pop(pending.session or "", None)
        elif pending.method in _NAMING:
            result = msgspec.json.decode(frames.member(line, "result") or b"{}")
            self._join(str(result.get("sessionId")), pending.raw)

    def _join(self, session: str, raw: bytes) -> None:
        """Remember what it takes to resume the session."""
        params = msgspec.json.decode(frames.params_of(raw))
        known = self._sessions.get(session, {"cwd": "/", "mcpServers": []})
        self._sessions[session] = {name: params.get(name, value) for name, value in known.items()}

    def _asked_of_client(self, key: bytes) -> bytes:
        """A restarted server counts its questions from 1 again; the client must not mix them up with older ones."""
        return key if self._generation == 0 else frames.to_json(f"{self._generation}/{key.decode()}")


def _asked_by_server(key: bytes) -> bytes:
    value = msgspec.json.decode(key)
    return value.partition("/")[2].encode() if isinstance(value, str) and "/" in value else key


def _withdrawal(key: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"%b","params":{"requestId":%b}}' % (CANCEL_REQUEST.encode(), key)


def _checked(response: httpx.Response) -> httpx.Response:
    """Raises ConnectionLost for 404, HTTPError for what may pass, SandboxAgentError for what will not."""
    status = response.status_code
    is_ours = response.headers.get("content-type", "").startswith("application/problem+json")
    if status == httpx.codes.NOT_FOUND:
        raise ConnectionLost("the server does not know this connection")
    if status == httpx.codes.SERVICE_UNAVAILABLE or (status > httpx.codes.INTERNAL_SERVER_ERROR and not is_ours):
        raise httpx.RemoteProtocolError(f"the server answers {status}")
    if not response.is_success:
        detail = response.text if response.is_stream_consumed else ""
        raise SandboxAgentError(f"the server answers {status} {detail}".rstrip())
    return response


def _with_agent(raw: bytes, agent: str) -> bytes:
    return _with_meta(raw, "agent", agent)


def _with_turn(raw: bytes) -> bytes:
    return _with_meta(raw, "turnId", uuid4().hex, is_default=True)


def _with_meta(raw: bytes, name: str, value: str, *, is_default: bool = False) -> bytes:
    """The message with a member in our part of `params._meta`."""
    meta = msgspec.json.decode(frames.params_of(raw), type=_Params).meta
    ours = meta.get(META) or {}
    merged = {name: value, **ours} if is_default else {**ours, name: value}
    return frames.with_params(raw, {"_meta": {**meta, META: merged}})
