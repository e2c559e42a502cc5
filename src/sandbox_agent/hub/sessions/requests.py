"""Requests about sessions, from JSON-RPC to the use cases that they mean. What can be done at once is done at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox_agent.core import config_options, frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.ids import AgentId, SessionId, SessionName
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.passages import first_words
from sandbox_agent.core.session import Phase
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentUnsupported, RemoteError, SandboxAgentError, SessionEnded, UnknownSession
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request, named, read_ours, says_nothing
from sandbox_agent.hub.quotas import Quotas
from sandbox_agent.hub.sessions.establish import Established, NewSession, agent_params, read_wishes
from sandbox_agent.hub.sessions.items import Items
from sandbox_agent.hub.sessions.sessions import Sessions
from sandbox_agent.hub.sessions.turn_ids import TurnIds
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.store.base import SessionRecord


class SessionRequests:
    def __init__(
        self,
        agents: Agents,
        sessions: Sessions,
        turn_ids: TurnIds,
        items: Items,
        tasks: Tasks,
        environ: Mapping[str, str],
        quotas: Quotas,
    ) -> None:
        self._agents = agents
        self._sessions = sessions
        self._turn_ids = turn_ids
        self._items = items
        self._tasks = tasks
        self._environ = environ
        self._quotas = quotas

    def _plain(self, request: Request) -> Agent | None:
        """The agent of a live session of the connection's own agent, named by its id with nothing of ours beside it.

        That is what `resolve` prefers: most requests are such, and need no more than this look."""
        session = request.frame.session or SessionId("")
        agent = self._agents.knowing(request.connection.agent, session)
        if agent is None or not agent.is_ready or not says_nothing(request.raw):
            return None
        return agent if agent.sessions[session].phase is Phase.LIVE else None

    def prompt(self, request: Request) -> None:
        turn_id = request.ours().turn_id
        record = self._sessions.resolve_held(request.target())
        if turn_id is None and record is not None:
            self._run_prompt(record, request, None)
        else:
            self._tasks.answer(request, self._prompt_later(request, turn_id))

    async def _prompt_later(self, request: Request, turn_id: str | None) -> None:
        record = await self._sessions.resolve(request.target())
        if turn_id is not None and not await self._turn_ids.begin(record.key, turn_id, _addressed(request, record)):
            return
        try:
            self._sessions.require(record)
            self._run_prompt(record, request, turn_id)
        except SandboxAgentError as error:
            line = frames.failure(request.frame.key, error)
            self._turn_ids.answered(request.connection.id, request.ticket, line, has_run=False)
            raise

    def _run_prompt(self, record: SessionRecord, request: Request, turn_id: str | None) -> None:
        if record.ended is not None:
            ended = f"session {record.session_id!r} has ended: {record.ended_reason}"
            raise SessionEnded(ended, sessionId=record.session_id)
        self._quotas.room_for_a_turn(record.key, request.connection.client.user)
        agent = self._agents.of(record.key)
        agent.open(record.session_id)
        if record.first_prompt is None:
            record.first_prompt = first_words(request.raw)
        self._items.turn_begins(record.key)
        agent.prompt(_addressed(request, record), turn_id)

    def pass_on(self, request: Request) -> None:
        """Any other request of a session: at once if the session is live, else when it has been woken."""
        agent = self._plain(request)
        if agent is not None:
            agent.call(request)
        else:
            self._tasks.answer(request, self._pass_on_later(request))

    async def _pass_on_later(self, request: Request) -> None:
        record = await self._sessions.resolve(request.target())
        await self._sessions.live(record)
        self._agents.of(record.key).call(_addressed(request, record))

    def notify(self, connection: Connection, frame: Frame, raw: bytes, session: str) -> None:
        """Pass a notification on to the agent of the session that it names. Raises InvalidParams."""
        name = named(session, read_ours(raw, frame.method or ""), connection.agent)
        record = self._sessions.resolve_held(name)
        user = connection.user.name
        if record is not None:
            self._notify(record, frame, raw, user)
        else:
            self._tasks.start(self._notify_later(name, frame, raw, user))

    async def _notify_later(self, name: SessionName, frame: Frame, raw: bytes, user: str | None) -> None:
        self._notify(await self._sessions.resolve(name), frame, raw, user)

    def _notify(self, record: SessionRecord, frame: Frame, raw: bytes, user: str | None) -> None:
        agent = self._agents.of(record.key)
        agent.open(record.session_id)
        agent.notify(*_readdressed(frame, raw, record), user=user)

    async def create(self, request: Request) -> None:
        wishes = read_wishes(request)
        made = await self._sessions.establish(
            NewSession(
                agent=AgentId(wishes.agent or request.connection.agent),
                method="session/new",
                params=agent_params(request, wishes, self._environ),
                wishes=wishes,
                client=request.connection.client,
                key=request.frame.key,
            )
        )
        await self._announce(request, made)

    async def fork(self, request: Request) -> None:
        parent = await self._sessions.resolve(request.target())
        wishes = read_wishes(request)
        kept: dict[str, Any] = {"cwd": parent.cwd or "/", "mcpServers": parent.mcp_servers}  # unless the client differs
        if parent.additional_directories:
            kept["additionalDirectories"] = parent.additional_directories
        params = {**agent_params(request, wishes, self._environ, kept), "sessionId": parent.session_id}
        await self._sessions.live(parent)
        made = await self._sessions.establish(
            NewSession(
                agent=parent.agent,
                method="session/fork",
                params=params,
                wishes=wishes,
                client=request.connection.client,
                key=request.frame.key,
                parent=parent,
            )
        )
        await self._announce(request, made)

    async def _announce(self, request: Request, made: Established) -> None:
        record = made.record
        await self._kept(record)
        ours = {"agent": record.agent, "alias": record.alias, **made.outcome}
        meta = as_object(made.result.get("_meta"))
        answer = {**made.result, "_meta": {**meta, META: {**as_object(meta.get(META)), **ours}}}
        await self._sessions.attach.announce(
            request.connection, record, lambda: request.answer(answer, record.session_id)
        )

    async def load(self, request: Request) -> None:
        await self._attach(request, self._sessions.attach.load)

    async def resume(self, request: Request) -> None:
        await self._attach(request, self._sessions.attach.resume)

    async def _attach(self, request: Request, attach: Any) -> None:
        target = request.target()
        record = await self._sessions.find(target)
        if record is None:
            agent = target.agent or request.connection.agent
            async with self._sessions.loading(agent, SessionId(target.name)):
                record = await self._sessions.find(target)
                if record is None:
                    await self._load_from_agent(request, agent)
                    return
        request.answer(await attach(request.connection, record), record.session_id)

    async def _load_from_agent(self, request: Request, agent_id: AgentId) -> None:
        """A session that only the agent knows."""
        agent = await self._agents.started(agent_id)
        session = SessionId(request.frame.session or "")
        if not agent.can(request.method.partition("/")[2]):
            raise UnknownSession(session)
        wishes = read_wishes(request)
        made = await self._sessions.establish(
            NewSession(
                agent=agent_id,
                method=request.method,
                params=agent_params(request, wishes, self._environ),
                wishes=wishes,
                client=request.connection.client,
                key=request.frame.key,
                loaded=session,
            )
        )
        await self._kept(made.record)
        request.answer(made.result, session)

    async def _kept(self, record: SessionRecord) -> None:
        """Return when a new session is remembered for good. Raises why it is not: its name or alias is another's."""
        await self._sessions.safe()
        self._sessions.require(record)

    async def configure(self, request: Request) -> None:
        record = await self._sessions.resolve(request.target())
        await self._sessions.live(record)
        agent = self._agents.of(record.key)
        params = request.params()
        offered = record.offered
        if agent.version is Version.V2:
            offered = config_options.only_options(offered)
        wish = config_options.translate(request.method, params, offered) or (request.method, params)
        try:
            result = await self._set(agent, record, wish, request)
        except RemoteError as error:
            other = config_options.other_spelling(*wish, offered)
            if other is None or error.body.get("code") != AgentUnsupported.code:
                raise
            wish = other
            result = await self._set(agent, record, wish, request)
        record.offered = config_options.after_set(record.offered, *wish, result)
        if agent.version is Version.V2:
            record.offered = config_options.with_current_mode(record.offered)
        self._sessions.save(record)
        await self._sessions.safe()
        request.answer(result if result is not None else {}, record.session_id, known=record.offered)

    async def _set(
        self, agent: Agent, record: SessionRecord, wish: tuple[str, dict[str, Any]], request: Request
    ) -> Any:
        method, params = wish
        return await agent.request(
            method,
            {**params, "sessionId": record.session_id},
            session=record.session_id,
            on_behalf=request.behalf,
            timeout=None,
        )

    async def finish(self, request: Request) -> None:
        """session/close and session/delete, done here where the agent has no such method."""
        record = await self._sessions.resolve(request.target())
        if request.method == "session/delete":
            await self._sessions.end.delete(record)
            self._items.forget(record.key)
        else:
            await self._sessions.end.close(record)
        await self._sessions.safe()
        request.answer({}, record.session_id)


def _addressed(request: Request, record: SessionRecord) -> Request:
    """The same request under the agent's own session id, where an alias was used."""
    if request.frame.session == record.session_id:
        return request
    return Request(request.connection, request.ticket, *_readdressed(request.frame, request.raw, record), request.asked)


def _readdressed(frame: Frame, raw: bytes, record: SessionRecord) -> tuple[Frame, bytes]:
    if frame.session == record.session_id:
        return frame, raw
    raw = frames.with_params(raw, {"sessionId": record.session_id})
    return frames.parse(raw), raw
