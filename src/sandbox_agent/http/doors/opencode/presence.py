"""The bridge as a client of the hub: one connection an agent, while anybody uses the bridge.

It asks and answers with them; what happens it reads from histories. When the last user has left they are closed, so
that a question is not taken for attended that nobody sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.users import OWNER, User
from sandbox_agent.errors import RemoteError
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.view import ViewConnection
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import SessionRecord

_INTRODUCTION: dict[str, Any] = {
    "protocolVersion": 1,
    "clientInfo": {"name": "opencode", "version": "1"},
    "clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
}


class Presence:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._connections: dict[tuple[AgentId, User], Connection] = {}
        self._opening = asyncio.Lock()
        self._users = 0
        self._numbers = count(1)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Somebody follows, or waits for an answer."""
        self.come()
        try:
            yield
        finally:
            self.leave()

    def come(self) -> None:
        self._users += 1

    def leave(self) -> None:
        self._users -= 1
        if not self._users and not self._hub.closing.is_set():
            self._hub.tasks.start(self._close())

    async def connection(self, agent: AgentId, user: User = OWNER) -> Connection:
        """One for each user, who is named in what is done with it. Starts the agent if need be.

        Raises UnknownAgent, InstallError, AgentStartFailed, TooMany."""
        async with self._opening:
            known = self._connections.get((agent, user))
            if known is None or known.is_closed:
                known, _ = await self._hub.open_connection(agent, _INTRODUCTION, kind=ViewConnection, user=user)
                self._connections[agent, user] = known
            return known

    async def join(self, record: SessionRecord) -> None:
        """Be asked what the session's agent asks, if its process runs and anybody is there."""
        agent = self._hub.agents.found(record.key)
        if self._users and agent is not None and agent.is_ready and record.session_id in agent.sessions:
            self._hub.sessions.attach.join(await self.connection(record.agent), record)

    async def ask(
        self, user: User, agent: AgentId, method: str, params: dict[str, Any], *, timeout: float | None
    ) -> Any:
        """The result of a request. Raises RemoteError and what the hub raises."""
        connection = await self.connection(agent, user)
        raw = frames.request(b"%d" % next(self._numbers), method, params)
        frame = frames.parse(raw)
        await self._hub.room(connection, frame)
        answer = frames.decode((await connection.request(frame, raw, timeout=timeout)).line)
        if "error" in answer:
            raise RemoteError(as_object(answer["error"]))
        return answer.get("result")

    async def answer(self, user: User, record: SessionRecord, ask: Any, result: dict[str, Any]) -> None:
        """Answer a question of the session's agent, on behalf of one who uses the bridge."""
        connection = await self.connection(record.agent, user)
        self._hub.sessions.attach.join(connection, record)
        raw = frames.result(frames.to_json(ask), result)
        self._hub.send(connection, frames.parse(raw), raw)

    async def _close(self) -> None:
        if self._users:
            return
        closing, self._connections = self._connections, {}
        for connection in closing.values():
            await self._hub.close_connection(connection.id)
