"""A reader of `GET /v1/events` that collects what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec


class Followed:
    """Positions and changes in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._changed = asyncio.Event()

    async def read(self, response: httpx.Response) -> None:
        position = ""
        with contextlib.suppress(httpx.TransportError):  # the server was killed: the test looks at what came before
            async for line in response.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    position = value
                elif name == "data":
                    self.events.append((position, msgspec.json.decode(value)))
                    self._changed.set()

    def types(self, session: str | None = None) -> list[str]:
        return [event["type"] for _, event in self.events if session in (None, event.get("sessionId"))]

    async def until(self, kind: str, session: str | None = None) -> dict[str, Any]:
        return await self.find(lambda event: event["type"] == kind and session in (None, event.get("sessionId")))

    async def find(self, is_wanted: Callable[[dict[str, Any]], bool], *, after: int = 0) -> dict[str, Any]:
        """The first such change, from the number `after` on."""
        async with asyncio.timeout(30):
            while True:
                for _, event in self.events[after:]:
                    if is_wanted(event):
                        return event
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def following(url: str, *, after: str | None = None, node: str | None = None) -> AsyncIterator[Followed]:
    headers = {} if after is None else {"Last-Event-ID": after}
    params = {} if node is None else {"node": node}
    async with (
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http,
        http.stream("GET", "/v1/events", headers=headers, params=params) as response,
    ):
        assert response.status_code == 200
        followed = Followed()
        task = asyncio.create_task(followed.read(response))
        try:
            yield followed
        finally:
            task.cancel()
