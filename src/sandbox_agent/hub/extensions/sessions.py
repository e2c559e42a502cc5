"""Our extension methods, `_sandboxagent/*`, answered by the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from sandbox_agent.core import config_options as setup
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import AgentUnsupported, InvalidParams
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.sessions import endings
from sandbox_agent.hub.sessions.history import EventsWanted, legacy_events, raw_events
from sandbox_agent.hub.sessions.listing import listed, session_info
from sandbox_agent.store.base import SessionRecord

if TYPE_CHECKING:
    from sandbox_agent.hub.hub import Hub


class Extensions:
    def __init__(self, hub: Hub, others: Mapping[str, Callable[[Request], Awaitable[Any]]]) -> None:
        self._hub = hub
        self._methods: dict[str, Callable[[Request], Awaitable[Any]]] = {
            "_sandboxagent/session/detach": self._detach,
            "_sandboxagent/session/list_models": self._list_models,
            "_sandboxagent/session/set_metadata": self._set_metadata,
            "_sandboxagent/session/terminate": self._terminate,
            "_sandboxagent/session/events": self._events,
            "_sandboxagent/session/get": self._get,
            "_sandboxagent/session/list": self._list,
            **others,
        }

    @property
    def names(self) -> list[str]:
        return sorted(self._methods)

    async def answer(self, request: Request) -> None:
        method = self._methods.get(request.method)
        if method is None:
            known = ", ".join(self.names)
            raise AgentUnsupported(f"no extension {request.method!r}; there are: {known}")
        request.answer(await method(request))

    async def _session(self, request: Request) -> SessionRecord:
        name = request.frame.session
        if name is None:
            raise InvalidParams(f"params of {request.method}: sessionId is missing")
        prefer = AgentId(request.meta().get("agent") or request.connection.agent)
        return self._hub.sessions.held_by_name(name, prefer) or await self._hub.sessions.find(name, prefer)

    async def _detach(self, request: Request) -> dict[str, Any]:
        record = await self._session(request)
        agent = self._hub.agent(record.agent)
        agent.apply(agent.relay.detach(request.connection.id, record.session_id))
        return {}

    async def _list_models(self, request: Request) -> dict[str, Any]:
        record = await self._session(request)
        models = setup.choices(record.setup, "model")
        return {"availableModels": models, "currentModelId": setup.current(record.setup, "model")}

    async def _set_metadata(self, request: Request) -> dict[str, Any]:
        record = await self._session(request)
        params = request.params()
        metadata = params.get("metadata")
        if not isinstance(metadata, dict):
            raise InvalidParams(f"params of {request.method}: metadata must be an object")
        merged = {**record.metadata, **metadata}
        record.metadata = {name: value for name, value in merged.items() if value is not None}
        if isinstance(metadata.get("title"), str):
            record.title = metadata["title"]
        self._hub.sessions.save(record)
        return {"metadata": record.metadata}

    async def _terminate(self, request: Request) -> dict[str, Any]:
        """Idempotent: a session that has ended stays ended."""
        record = await self._session(request)
        if record.ended is None:
            agent = self._hub.agent(record.agent)
            await endings.finish(agent, record, "close")
            endings.end(agent, self._hub.sessions, record, endings.terminated("terminated by a client"))
        return {"terminated": True}

    async def _get(self, request: Request) -> dict[str, Any]:
        return session_info(await self._session(request))

    async def _list(self, request: Request) -> dict[str, Any]:
        return await listed(self._hub.sessions, request)

    async def _events(self, request: Request) -> dict[str, Any]:
        wanted = request.read(EventsWanted)
        record = await self._session(request)
        if wanted.format == "legacy":
            return await legacy_events(self._hub.store, record, wanted)
        return await raw_events(self._hub.store, record, wanted)
