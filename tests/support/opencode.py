"""A small client of `/opencode` for tests: calls, and a reader that collects events and what they tell."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from sandbox_agent.history.opencode import Messages, Told

DEADLINE = 30.0
Event = dict[str, Any]


class OpenCode:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, address: str, /, **query: Any) -> Any:
        return _value(await self.http.get(f"/opencode{address}", params=query))

    async def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return _value(await self.http.post(f"/opencode{path}", json=body, params=query))

    async def new_session(self, agent: str = "mock", **more: Any) -> str:
        made = await self.post("/session", {"model": {"providerID": agent, "id": "default"}, **more})
        return str(made["id"])

    async def prompt(self, session: str, text: str, **more: Any) -> Any:
        return await self.post(f"/session/{session}/message", said(text, **more))

    async def prompt_async(self, session: str, text: str, **more: Any) -> None:
        answer = await self.http.post(f"/opencode/session/{session}/prompt_async", json=said(text, **more))
        assert answer.status_code == 204, answer.text
        assert answer.content == b""

    async def messages(self, session: str, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.get(f"/session/{session}/message", **query)
        return found


class Heard:
    """Events in the order in which they came, and the messages that they make."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()
        self._messages: dict[str, Messages] = {}

    def add(self, payload: Event) -> None:
        self.events.append(payload)
        told = Told(payload["type"], payload["properties"])
        session = told.properties.get("sessionID")
        if session is not None:
            self._messages.setdefault(session, Messages()).apply([told])
        self._changed.set()

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [event["properties"] for event in self.events if event["type"] == type_]

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def messages(self, session: str) -> list[dict[str, Any]]:
        """In the order of their times and ids, and parts in that of theirs, as the terminal UI has them."""
        found = self._messages[session].listed() if session in self._messages else []
        ordered = sorted(found, key=lambda message: (message["info"]["time"]["created"], message["info"]["id"]))
        return [{**one, "parts": sorted(one["parts"], key=lambda part: str(part["id"]))} for one in ordered]

    async def until(self, done: Callable[[Heard], Any], deadline: float = DEADLINE) -> Any:
        async with asyncio.timeout(deadline):
            while not (found := done(self)):
                self._changed.clear()
                await self._changed.wait()
        return found

    async def first(self, type_: str, count: int = 1) -> dict[str, Any]:
        """The properties of the `count`-th event of a type. One who has just come may be told the same twice."""

        def different(heard: Heard) -> list[dict[str, Any]]:
            told = heard.of(type_)
            return [one for place, one in enumerate(told) if one not in told[:place]]

        await self.until(lambda heard: len(different(heard)) >= count)
        return different(self)[count - 1]


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"parts": [{"type": "text", "text": text}], **more}


@asynccontextmanager
async def opencode(url: str, **headers: str) -> AsyncIterator[OpenCode]:
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=DEADLINE, trust_env=False) as http:
        yield OpenCode(http)


@asynccontextmanager
async def following(client: OpenCode, path: str = "/event", **query: Any) -> AsyncIterator[Heard]:
    """Follow events until the block ends; inside it, the stream is open."""
    heard = Heard()
    reading = asyncio.create_task(_read(client, path, query, heard))
    try:
        await heard.first("server.connected")
        yield heard
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading


async def _read(client: OpenCode, path: str, query: dict[str, Any], heard: Heard) -> None:
    async with client.http.stream("GET", f"/opencode{path}", params=query, timeout=None) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                event = msgspec.json.decode(line.removeprefix("data: "))
                heard.add(event["payload"] if path.startswith("/global") else event)


def _value(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    assert answer.headers["content-type"] == "application/json"
    return answer.json()
