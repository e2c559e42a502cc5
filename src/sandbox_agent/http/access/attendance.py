"""Requests of users with named tokens: when a token expires or is revoked, they end, streams in the middle."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from sandbox_agent.core.users import User
from sandbox_agent.errors import ClientGone
from sandbox_agent.http.access.auth import REFUSED
from sandbox_agent.http.access.tokens import NamedTokens
from sandbox_agent.http.asgi.messages import (
    Abandon,
    Asgi,
    Message,
    Receive,
    Repeat,
    Respond,
    Scope,
    Send,
    send_response,
)
from sandbox_agent.http.asgi.websocket import Close, close

LOOKS = 0.25
"""Seconds between looks at the tokens while anybody who holds one is here."""
_PATIENCE = 1.0
"""Seconds that a peer which does not read may take to be told why it is put out."""
_ENDED = "the token has expired or was revoked"


class Attendance:
    """Who is here by a named token. Others cost nothing."""

    def __init__(self, tokens: NamedTokens, on_end: Callable[[User], Awaitable[None]]) -> None:
        self._tokens = tokens
        self._on_end = on_end
        self._here: dict[User, set[_Visit]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def serve(self, user: User, app: Asgi, scope: Scope, receive: Receive, send: Send) -> None:
        """As `app` does, until it is done or the user's token is good no more."""
        visit = _Visit(scope["type"], receive, send)
        self._here.setdefault(user, set()).add(visit)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        if "repeat" in scope:
            remember = scope["repeat"]
            scope["repeat"] = lambda repeat: remember(self._while_current(user, repeat))
        try:
            await app(scope, visit.receive, visit.send)
        except Exception:
            if not visit.ended.is_set():  # else it failed because of that, whatever it says
                raise
        finally:
            visits = self._here[user]
            visits.discard(visit)
            if not visits:
                del self._here[user]
        if visit.ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await visit.finish(scope)

    def _while_current(self, user: User, repeat: Repeat) -> Repeat:
        """One whose token is good no more takes the plain way, where it is refused."""

        def guarded(body: bytes, respond: Respond) -> Abandon | None:
            return repeat(body, respond) if self._tokens.is_current(user) else None

        return guarded

    async def _look(self) -> None:
        try:
            while self._here:
                await asyncio.sleep(LOOKS)
                gone = [user for user in self._here if not self._tokens.is_current(user)]
                for user in gone:
                    for visit in self._here[user]:
                        visit.ended.set()
                for user in gone:
                    await self._on_end(user)
        finally:
            self._looking = None


class _Visit:
    """One request. When its user's token ends, the app sees a peer that has left, and the peer is told why."""

    def __init__(self, kind: str, receive: Receive, send: Send) -> None:
        self._kind = kind
        self.ended = asyncio.Event()
        self._receive = receive
        self._send = send
        self._is_stream = False
        self._has_begun = False
        self._is_whole = False

    async def receive(self) -> Message:
        getting, ending = asyncio.ensure_future(self._receive()), asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait({getting, ending}, return_when=asyncio.FIRST_COMPLETED)
            if self.ended.is_set() or not getting.done():
                return {"type": f"{self._kind}.disconnect", "code": int(Close.POLICY)}
            return getting.result()
        finally:
            for waiting in (getting, ending):
                waiting.cancel()

    async def send(self, message: Message) -> None:
        if self.ended.is_set():
            raise ClientGone
        kind = message["type"]
        self._has_begun = True
        if kind == "http.response.start":
            self._is_stream = any(
                n == b"content-type" and v.startswith(b"text/event-stream") for n, v in message["headers"]
            )
        self._is_whole = kind.endswith("close") or (kind.endswith("response.body") and not message.get("more_body"))
        await self._send(message)

    async def finish(self, scope: Scope) -> None:
        if self._is_whole:
            return
        if scope["type"] == "websocket":
            await close(self._send, Close.POLICY, _ENDED)
        elif not self._has_begun:
            await send_response(REFUSED, scope, self._send)
        elif self._is_stream:
            await self._send({"type": "http.response.body", "body": f": end: {_ENDED}\n\n".encode()})
