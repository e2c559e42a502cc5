"""The entry to everything: a server, its agents, sessions and files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import httpx
import msgspec

from sandbox_agent.client.agents import Agents
from sandbox_agent.client.api import Api
from sandbox_agent.client.files import Files
from sandbox_agent.client.launch import FREE_PORT, LaunchedServer, launch_server
from sandbox_agent.errors import ConnectionLost

if TYPE_CHECKING:
    from sandbox_agent.client.asking import PermissionHandler, QuestionHandler
    from sandbox_agent.client.connection import AgentConnection
    from sandbox_agent.client.session import Session

DEFAULT_URL = "http://127.0.0.1:2468"


class SessionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A session that the server knows, running or not."""

    session_id: str
    agent: str
    alias: str | None = None
    title: str | None = None
    cwd: str | None = None
    mode: str | None = None
    model: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    ended: bool = False
    ended_reason: str | None = None
    event_count: int = 0
    metadata: dict[str, Any] = {}


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
        self._server: LaunchedServer | None = None
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
        named = (("--data-dir", data_dir), ("--config", config))
        given = tuple(word for flag, value in named if value is not None for word in (flag, str(value)))
        port = () if "--port" in flags else FREE_PORT
        sandbox._starting = {"flags": (*port, *flags, *given), "env": env, "log": log}
        return sandbox

    async def __aenter__(self) -> Self:
        if self._starting is not None:
            self._server = await launch_server(**self._starting)
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
        from sandbox_agent.client.session import create  # noqa: PLC0415 - ACP's types take long to import

        connection = await self._connection(agent)
        session = await create(connection, str(cwd), mcp_servers or [], wishes)
        session.on_permission(on_permission)
        session.on_question(on_question)
        return session

    async def load_session(
        self, session_id: str, *, agent: str | None = None, cwd: str | Path | None = None
    ) -> Session:
        """Attach to a session and have its conversation replayed into `session.replay`. Raises UnknownSession."""
        from sandbox_agent.client.session import load  # noqa: PLC0415

        return await load(await self._connection_for(session_id, agent), session_id, str(cwd or "/"))

    async def resume_session(
        self, session_id: str, *, agent: str | None = None, cwd: str | Path | None = None
    ) -> Session:
        """Attach to a session without replay. Raises UnknownSession, SessionEnded."""
        from sandbox_agent.client.session import resume  # noqa: PLC0415

        return await resume(await self._connection_for(session_id, agent), session_id, str(cwd or "/"))

    async def get_session(self, session_id: str, *, agent: str | None = None) -> Session:
        """A session without attaching to it: to read its history, describe, terminate or delete it."""
        from sandbox_agent.client.session import refer  # noqa: PLC0415

        return await refer(await self._connection_for(session_id, agent), session_id)

    async def list_sessions(
        self, *, agent: str | None = None, cwd: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The newest first."""
        sessions: list[SessionInfo] = []
        cursor: str | None = None
        while limit is None or len(sessions) < limit:
            page = await self.api.get("/v1/sessions", agent=agent, cwd=cwd, cursor=cursor)
            sessions += msgspec.convert(page["sessions"], list[SessionInfo])
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        return sessions[:limit]

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
        from sandbox_agent.client.connection import AgentConnection  # noqa: PLC0415

        if self._http is None:
            raise ConnectionLost("not connected: use `async with`")
        connection = AgentConnection(
            self._http,
            agent,
            on_permission=self._on_permission,
            on_question=self._on_question,
            retry_for=self._retry_for,
        )
        try:
            await connection.open()
        except BaseException:
            await connection.close()
            raise
        return connection
