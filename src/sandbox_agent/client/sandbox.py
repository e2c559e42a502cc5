"""The entry to everything: a server, its agents, sessions and files."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, Unpack
from urllib.parse import urlsplit

import msgspec

from sandbox_agent.client.agents import Agents
from sandbox_agent.client.api import Api
from sandbox_agent.client.files import Files
from sandbox_agent.client.processes import Processes
from sandbox_agent.client.providers.local import local
from sandbox_agent.client.providers.provider import Machine, Provider, started
from sandbox_agent.client.rpc.trust import trusted
from sandbox_agent.core.json_values import as_list
from sandbox_agent.errors import ConfigError, ConnectionLost, InvalidParams

if TYPE_CHECKING:
    import httpx

    from sandbox_agent.client.asking import PermissionHandler, QuestionHandler
    from sandbox_agent.client.connection import AgentConnection
    from sandbox_agent.client.session import Session, SessionOptions
else:
    from sandbox_agent import lazy_httpx as httpx

DEFAULT_URL = "http://127.0.0.1:2468"


def is_here(url: str) -> bool:
    """Whether a server at that address runs on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class SessionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A session that the server knows, running or not."""

    session_id: str
    agent: str
    alias: str | None = None
    title: str | None = None
    first_prompt: str | None = None
    last_error: str | None = None
    cwd: str | None = None
    mode: str | None = None
    model: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    ended: bool = False
    ended_reason: str | None = None
    event_count: int = 0
    native_session_id: str | None = None
    additional_directories: list[str] = []
    permission_mode: str | dict[str, Any] | None = None
    mcp: dict[str, Any] = {}
    skills: Any = None
    metadata: dict[str, Any] = {}


class SnippetPart(msgspec.Struct, frozen=True, rename="camel"):
    text: str
    is_match: bool = False


class SearchHit(msgspec.Struct, frozen=True, rename="camel"):
    """A passage with all the words. `sequence` is where it begins in the session's history."""

    sequence: int
    time: str
    kind: str
    snippet: list[SnippetPart]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.snippet)


class FoundSession(msgspec.Struct, frozen=True, rename="camel"):
    """`more_hits` passages match beside those in `hits`."""

    session: SessionInfo
    hits: list[SearchHit]
    more_hits: int = 0


class SearchResult(msgspec.Struct, frozen=True, rename="camel"):
    """Not `is_complete`: there may be more, in the last second of a conversation or beyond what a search looks at."""

    sessions: list[FoundSession]
    is_complete: bool


class SandboxAgent:
    """Use it as `async with SandboxAgent.connect(...) as sandbox`, or `.start()` for a server of your own.

    `on_permission` and `on_question` answer what agents ask; without them, requests in turns of this program are
    rejected. `retry_for` is how many seconds a server that went away is waited for. `ca_file` holds certificate
    authorities to believe besides the public ones, or those of `SSL_CERT_FILE`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
        retry_for: float = 120.0,
        ca_file: Path | str | None = None,
    ) -> None:
        self._url = url
        self._token = token
        self._on_permission = on_permission
        self._on_question = on_question
        self._retry_for = retry_for
        self._ca_file = ca_file
        self._starting: tuple[Provider, Mapping[str, str], float] | None = None
        self._machine: Machine | None = None
        self._http: httpx.AsyncClient | None = None
        self._verify: ssl.SSLContext | bool = True
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
        ca_file: Path | str | None = None,
    ) -> Self:
        """Use a server that runs already."""
        return cls(
            url,
            token=token,
            on_permission=on_permission,
            on_question=on_question,
            retry_for=retry_for,
            ca_file=ca_file,
        )

    @classmethod
    def start(
        cls,
        *,
        sandbox: Provider | None = None,
        env: Mapping[str, str] | None = None,
        within: float = 120.0,
        data_dir: Path | str | None = None,
        config: Path | str | None = None,
        flags: tuple[str, ...] = (),
        log: IO[bytes] | int | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
    ) -> Self:
        """Run a server for as long as the context lasts: as a child process, or where `sandbox` says.

        `sandbox` is one of `sandbox_agent.client.providers`, such as `docker("my-image")`, and is destroyed in
        the end. A child process never runs longer than this program. `env` is added to the server's environment.
        `within` is how many seconds the server may take to answer. The rest are the options of `local`.
        Raises ConfigError."""
        if sandbox is None:
            sandbox = local(data_dir=data_dir, config=config, flags=flags, log=log)
        elif data_dir is not None or config is not None or flags or log is not None:
            raise ConfigError(
                "data_dir, config, flags and log are for a server on this machine: give them to local(...)"
            )
        client = cls("", on_permission=on_permission, on_question=on_question, retry_for=5.0)
        client._starting = (sandbox, env or {}, within)
        return client

    async def __aenter__(self) -> Self:
        headers: dict[str, str] = {}
        if self._starting is not None:
            provider, env, within = self._starting
            self._machine = await started(provider, env, within=within)
            self._url, self._token = self._machine.url, self._machine.token
            headers.update(self._machine.headers)
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        limits = httpx.Limits(max_connections=None, keepalive_expiry=2.0)  # below the server's, so it never races
        self._verify = trusted(self._url, self._ca_file)
        self._http = httpx.AsyncClient(
            base_url=self._url,
            headers=headers,
            limits=limits,
            timeout=httpx.Timeout(60.0, pool=None),
            verify=self._verify,
            trust_env=False,
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
        if self._machine is not None:
            machine, self._machine = self._machine, None
            await machine.destroy()

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
        return Api(self._http, self._verify)

    @property
    def agents(self) -> Agents:
        return Agents(self.api)

    @property
    def files(self) -> Files:
        return Files(self.api)

    @property
    def processes(self) -> Processes:
        return Processes(self.api)

    async def health(self) -> dict[str, Any]:
        health: dict[str, Any] = await self.api.get("/v1/health")
        return health

    async def create_session(
        self,
        *,
        agent: str,
        cwd: str | Path | None = None,
        mcp_servers: list[dict[str, Any]] | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
        **options: Unpack[SessionOptions],
    ) -> Session:
        """A new conversation. `options` are `model`, `mode`, `permission_mode`, `title`, `session_id` (an alias) …

        `cwd` is a directory on the server's machine. Without one it is the current directory, if the server runs here.
        Raises UnknownAgent, AgentNotInstalled, AgentStartFailed, InvalidParams."""
        from sandbox_agent.client.session import create  # noqa: PLC0415

        connection = await self._connection(agent)
        session = await create(connection, self._cwd(cwd), mcp_servers or [], options)
        session.on_permission(on_permission)
        session.on_question(on_question)
        return session

    async def auth_methods(self, agent: str) -> list[dict[str, Any]]:
        """The ways to log in that the agent offers, for `authenticate`. Starts the agent if need be."""
        offered = (await self._connection(agent)).initialized.get("authMethods")
        return [method for method in as_list(offered) if isinstance(method, dict)]

    async def authenticate(self, agent: str, method_id: str) -> None:
        """Log the agent in, for all its clients. Not needed where a key in the server's environment does.

        Raises RequestFailed with what the agent says."""
        await (await self._connection(agent)).call("authenticate", {"methodId": method_id})

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

    async def search(self, words: str, *, limit: int = 20) -> SearchResult:
        """Sessions whose conversation has all these words, `"quoted ones"` in order; who said it last comes first.

        Raises InvalidParams for a query without words."""
        return msgspec.convert(await self.api.get("/v1/search", q=words, limit=limit), SearchResult)

    def _cwd(self, given: str | Path | None) -> str:
        if given is not None:
            return str(given)
        if not (self._machine.pid is not None if self._machine is not None else is_here(self._url)):
            raise InvalidParams(
                f"give a cwd: a directory on the machine of the server, which runs elsewhere ({self._url})"
            )
        return str(Path.cwd())

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
