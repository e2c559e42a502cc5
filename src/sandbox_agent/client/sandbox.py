"""The entry to everything: a server, its agents, sessions and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import httpx

from sandbox_agent.client.agents import Agents
from sandbox_agent.client.api import Api
from sandbox_agent.client.embedded import EmbeddedServer
from sandbox_agent.client.files import Files
from sandbox_agent.client.inventory import SessionInfo, list_sessions
from sandbox_agent.errors import ConnectionLost

if TYPE_CHECKING:
    from sandbox_agent.client.asking import PermissionHandler, QuestionHandler
    from sandbox_agent.client.connection import AgentConnection
    from sandbox_agent.client.session import Session

DEFAULT_URL = "http://127.0.0.1:2468"


class SandboxAgent:
    """Use it as `async with SandboxAgent.connect(...) as sandbox`, or `.start()` for a server of your own.

    `on_permission` and `on_question` answer what agents ask; without them, requests in turns of this program are
    rejected. `retry_for` is how many seconds a server that went away is waited for."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
        retry_for: float = 120.0,
    ) -> None:
        self._url = url
        self._token = token
        self._on_permission = on_permission
        self._on_question = on_question
        self._retry_for = retry_for
        self._starting: dict[str, Any] | None = None
        self._server: EmbeddedServer | None = None
        self._http: httpx.AsyncClient | None = None
        self._connections: dict[str, asyncio.Task[AgentConnection]] = {}

    @classmethod
    def connect(
        cls,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
        retry_for: float = 120.0,
    ) -> Self:
        """Use a server that runs already."""
        return cls(url, token=token, on_permission=on_permission, on_question=on_question, retry_for=retry_for)

    @classmethod
    def start(
        cls,
        *,
        data_dir: Path | str | None = None,
        config: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        flags: tuple[str, ...] = (),
        log: IO[bytes] | int | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
    ) -> Self:
        """Run a server as a child process for as long as the context lasts."""
        sandbox = cls("", on_permission=on_permission, on_question=on_question, retry_for=5.0)
        sandbox._starting = {"data_dir": data_dir, "config": config, "env": env, "flags": flags, "log": log}
        return sandbox

    async def __aenter__(self) -> Self:
        if self._starting is not None:
            self._server = await EmbeddedServer.start(**self._starting)
            self._url, self._token = self._server.url, self._server.token
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        limits = httpx.Limits(max_connections=None, keepalive_expiry=2.0)  # below the server's, so it never races
        self._http = httpx.AsyncClient(
            base_url=self._url, headers=headers, limits=limits, timeout=httpx.Timeout(60.0, pool=None), trust_env=False
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opening in self._connections.values():
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                await opening.result().close()
            else:
                opening.cancel()
        self._connections.clear()
        if self._http is not None:
            await self._http.aclose()
        if self._server is not None:
            await self._server.stop()

    @property
    def url(self) -> str:
        return self._url

    @property
    def token(self) -> str | None:
        return self._token

    @property
    def api(self) -> Api:
        """Plain HTTP calls to `/v1/…`."""
        if self._http is None:
            raise ConnectionLost("not connected: use `async with`")
        return Api(self._http)

    @property
    def agents(self) -> Agents:
        return Agents(self.api)

    @property
    def files(self) -> Files:
        return Files(self.api)

    async def health(self) -> dict[str, Any]:
        health: dict[str, Any] = await self.api.get("/v1/health")
        return health

    async def create_session(
        self,
        *,
        agent: str,
        cwd: str | Path = "/",
        mcp_servers: list[dict[str, Any]] | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
        **wishes: Any,
    ) -> Session:
        """A new conversation. `wishes` are `model`, `mode`, `permission_mode`, `title`, `session_id` (an alias) …

        Raises UnknownAgent, AgentNotInstalled, AgentStartFailed, InvalidParams."""
        from sandbox_agent.client.opening import create  # noqa: PLC0415 - ACP's types take long to import

        connection = await self._connection(agent)
        session = await create(connection, str(cwd), mcp_servers or [], wishes)
        session.on_permission(on_permission)
        session.on_question(on_question)
        return session

    async def load_session(
        self, session_id: str, *, agent: str | None = None, cwd: str | Path | None = None
    ) -> Session:
        """Attach to a session and have its conversation replayed into `session.replay`. Raises UnknownSession."""
        from sandbox_agent.client.opening import load  # noqa: PLC0415

        return await load(await self._connection_for(session_id, agent), session_id, str(cwd or "/"))

    async def resume_session(
        self, session_id: str, *, agent: str | None = None, cwd: str | Path | None = None
    ) -> Session:
        """Attach to a session without replay. Raises UnknownSession, SessionEnded."""
        from sandbox_agent.client.opening import resume  # noqa: PLC0415

        return await resume(await self._connection_for(session_id, agent), session_id, str(cwd or "/"))

    async def get_session(self, session_id: str, *, agent: str | None = None) -> Session:
        """A session without attaching to it: to read its history, describe, terminate or delete it."""
        from sandbox_agent.client.opening import refer  # noqa: PLC0415

        return await refer(await self._connection_for(session_id, agent), session_id)

    async def list_sessions(
        self, *, agent: str | None = None, cwd: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The newest first."""
        found: AsyncIterator[SessionInfo] = list_sessions(self.api, agent=agent, cwd=cwd)
        sessions: list[SessionInfo] = []
        async for session in found:
            sessions.append(session)
            if limit is not None and len(sessions) >= limit:
                break
        return sessions

    async def _connection_for(self, session_id: str, agent: str | None) -> AgentConnection:
        if agent is None:
            agent = str((await self.api.get(f"/v1/sessions/{session_id}"))["agent"])
        return await self._connection(agent)

    async def _connection(self, agent: str) -> AgentConnection:
        """The one connection to this agent, opened on first use."""
        opening = self._connections.get(agent)
        if opening is None:
            opening = self._connections[agent] = asyncio.create_task(self._open(agent))
        try:
            return await asyncio.shield(opening)
        except BaseException:
            if opening.done():
                self._connections.pop(agent, None)
            raise

    async def _open(self, agent: str) -> AgentConnection:
        from sandbox_agent.client.connection import AgentConnection, Handlers  # noqa: PLC0415

        if self._http is None:
            raise ConnectionLost("not connected: use `async with`")
        handlers = Handlers(self._on_permission, self._on_question)
        connection = AgentConnection(self._http, agent, handlers, retry_for=self._retry_for)
        try:
            await connection.open()
        except BaseException:
            await connection.close()
            raise
        return connection
