"""What clients do with sessions: make them, come to them, prompt, configure, end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from sandbox_agent.core import config_options as setup
from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionKey
from sandbox_agent.errors import AgentUnsupported, InvalidParams, RemoteError, SandboxAgentError, SessionEnded
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.sessions import creation, endings
from sandbox_agent.hub.sessions.attachment import Attachment
from sandbox_agent.hub.sessions.items import Items
from sandbox_agent.hub.sessions.turns import Turns
from sandbox_agent.store.base import SessionRecord

if TYPE_CHECKING:
    from sandbox_agent.hub.hub import Hub


class _TurnId(msgspec.Struct, rename="camel"):
    turn_id: str | None = None


class _Meta(msgspec.Struct):
    ours: _TurnId | None = msgspec.field(name=META, default=None)


class _Prompt(msgspec.Struct):
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


class Conversations:
    """Each call that names a session, or makes one. What can be done at once is done at once."""

    def __init__(
        self, hub: Hub, attachment: Attachment, turns: Turns, items: Items, environ: Mapping[str, str]
    ) -> None:
        self._hub = hub
        self._items = items
        self._attachment = attachment
        self._turns = turns
        self._environ = environ

    def pass_on(self, request: Request) -> None:
        """Any other request of a session: at once if the session is live, else when it has been woken."""
        name = request.frame.session
        agent = self._hub.agents.get(request.connection.agent)
        route = agent.relay.routes.get(name) if agent is not None and name is not None else None
        if agent is not None and route is not None and route.is_live and agent.is_ready:
            agent.call(request)
        else:
            self._hub.spawn(request, self._pass_on_later(request))

    async def _pass_on_later(self, request: Request) -> None:
        record = await self._record_of(request)
        await self._attachment.live(record.key)
        self._hub.agent(record.agent).call(_addressed(request, record))

    async def _record_of(self, request: Request) -> SessionRecord:
        name = request.frame.session
        if name is None:
            raise InvalidParams(f"params of {request.method}: sessionId is missing")
        prefer = AgentId(request.meta().get("agent") or request.connection.agent)
        return self._hub.sessions.held_by_name(name, prefer) or await self._hub.sessions.find(name, prefer)

    def prompt(self, request: Request) -> None:
        wanted = request.read(_Prompt)
        turn_id = wanted.meta.ours.turn_id if wanted.meta and wanted.meta.ours else None
        name = request.frame.session
        agent = self._hub.agents.get(request.connection.agent)
        if turn_id is None and agent is not None and name in agent.relay.routes:
            self._run_prompt(agent, request)
        else:
            self._hub.spawn(request, self._prompt_later(request, turn_id))

    async def _prompt_later(self, request: Request, turn_id: str | None) -> None:
        record = await self._record_of(request)
        addressed = _addressed(request, record)
        if turn_id is not None and not await self._turns.begin(record.key, turn_id, addressed):
            return
        agent = self._hub.agent(record.agent)
        agent.relay.open_route(record.session_id, is_live=False)
        try:
            self._run_prompt(agent, addressed)
        except SandboxAgentError as error:
            line = frames.failure(request.frame.key, error)
            self._turns.answered(request.connection.id, request.ticket, line, has_run=False)
            raise

    def _run_prompt(self, agent: Agent, request: Request) -> None:
        session = request.frame.session
        if session is None:
            raise InvalidParams(f"params of {request.method}: sessionId is missing")
        key = SessionKey(agent.id, session)
        record = self._hub.sessions.held(key)
        if record is not None and record.ended is not None:
            raise SessionEnded(f"session {session!r} has ended: {record.ended_reason}", sessionId=session)
        self._items.turn_begins(key)
        agent.apply(agent.relay.prompt(request.connection.client, request.ticket, request.frame, request.raw))

    async def attach(self, request: Request) -> None:
        act = self._attachment.load if request.method == "session/load" else self._attachment.resume
        await act(request)

    async def create(self, request: Request) -> None:
        wishes = creation.read_wishes(request)
        agent_id = AgentId(wishes.agent or request.connection.agent)
        await self._hub.installs.ensure(agent_id)
        agent = self._hub.agent(agent_id)
        await agent.ready()
        if wishes.requested_session_id is not None:
            await self._hub.sessions.claim_alias(wishes.requested_session_id)
        params = creation.agent_params(request, wishes, self._environ)
        policy = creation.policy_of(wishes, agent.default_policy)
        result = await agent.request("session/new", params, on_behalf=request.behalf, timeout=None)
        record = self._hub.sessions.add(creation.new_record(agent, params, wishes, result))
        self._turns.session_made(record.key)
        agent.relay.routes[record.session_id].policy = policy
        outcome = await creation.apply_choices(agent, record, wishes)
        self._hub.sessions.save(record)
        await self._announce(request, agent, record, {**result, **setup.from_answer(record.setup)}, outcome)

    async def fork(self, request: Request) -> None:
        record = await self._record_of(request)
        await self._attachment.live(record.key)
        agent = self._hub.agent(record.agent)
        kept = {"cwd": record.cwd or "/", "mcpServers": record.mcp_servers}  # unless the client says otherwise
        params = {**kept, **request.params(), "sessionId": record.session_id}
        result = await agent.request(
            "session/fork", params, session=record.session_id, on_behalf=request.behalf, timeout=None
        )
        wishes = creation.read_wishes(request)
        origin = {"sessionId": record.session_id, "sequence": self._hub.store.last_sequence(record.key.stream)}
        made = creation.new_record(agent, params, wishes, result)
        made.setup = {**made.setup, "forkedFrom": origin}
        self._hub.sessions.add(made)
        await self._announce(request, agent, made, result, {})

    async def _announce(
        self, request: Request, agent: Agent, record: SessionRecord, result: dict[str, Any], outcome: dict[str, Any]
    ) -> None:
        ours = {"agent": agent.id, "alias": record.alias, **outcome}
        meta = {**(result.get("_meta") or {}), META: ours}
        endings.started(agent, record)
        await self._attachment.announce(
            request.connection, record, lambda: request.answer({**result, "_meta": meta}, record.session_id)
        )

    async def configure(self, request: Request) -> None:
        record = await self._record_of(request)
        await self._attachment.live(record.key)
        agent = self._hub.agent(record.agent)
        params = request.params()
        wish = setup.translate(request.method, params, record.setup) or (request.method, params)
        try:
            result = await self._set(agent, record, wish, request)
        except RemoteError as error:
            other = setup.other_spelling(*wish, record.setup)
            if other is None or error.body.get("code") != AgentUnsupported.code:
                raise
            wish = other
            result = await self._set(agent, record, wish, request)
        record.setup = setup.after_set(record.setup, *wish, result)
        self._hub.sessions.save(record)
        request.answer(result if result is not None else {}, record.session_id)

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
        record = await self._record_of(request)
        verb = request.method.partition("/")[2]
        await endings.finish(self._hub.agent(record.agent), record, verb)
        if verb == "delete":
            self._hub.agent(record.agent).relay.routes.pop(record.session_id, None)
            await self._hub.sessions.delete(record)
        request.answer({}, record.session_id)


def _addressed(request: Request, record: SessionRecord) -> Request:
    """The same request under the agent's own session id, where an alias was used."""
    if request.frame.session == record.session_id:
        return request
    raw = frames.with_params(request.raw, {"sessionId": record.session_id})
    return Request(request.connection, request.ticket, frames.parse(raw), raw)
