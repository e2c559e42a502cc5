"""`_sandboxagent/session/*`: what ACP has no words for."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from sandbox_agent.core import config_options
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import InvalidParams
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.extensions.extensions import Method
from sandbox_agent.hub.sessions.history import EventsWanted
from sandbox_agent.hub.sessions.search import SearchResult, SearchWanted
from sandbox_agent.hub.sessions.sessions import Sessions
from sandbox_agent.hub.sessions.views import session_info
from sandbox_agent.store.base import SessionFilter


class _Listing(msgspec.Struct):
    cwd: str | None = None
    cursor: str | None = None
    agent: str | None = None
    ended: bool | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class _Followed(msgspec.Struct):
    after: Annotated[int, msgspec.Meta(ge=0)]


class _Queued(msgspec.Struct, rename="camel"):
    prompt_id: str


class SessionExtensions:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.methods: dict[str, Method] = {
            "_sandboxagent/session/detach": self._detach,
            "_sandboxagent/session/list_models": self._list_models,
            "_sandboxagent/session/set_metadata": self._set_metadata,
            "_sandboxagent/session/take_back": self._take_back,
            "_sandboxagent/session/terminate": self._terminate,
            "_sandboxagent/session/events": self._events,
            "_sandboxagent/session/follow": self._follow,
            "_sandboxagent/session/get": self._get,
            "_sandboxagent/session/list": self._list,
            "_sandboxagent/session/search": self._search,
        }

    async def _detach(self, request: Request) -> dict[str, Any]:
        record = await self._sessions.resolve(request.target())
        self._sessions.detach(request.connection, record)
        return {}

    async def _follow(self, request: Request) -> dict[str, Any]:
        wanted = request.read(_Followed)
        record = await self._sessions.resolve(request.target())
        last = await self._sessions.attach.follow(request.connection, record, wanted.after)
        return {"sessionId": record.session_id, "lastSequence": last}

    async def _list_models(self, request: Request) -> dict[str, Any]:
        record = await self._sessions.look_up(request.target())
        models = config_options.choices(record.offered, "model")
        return {"availableModels": models, "currentModelId": config_options.current(record.offered, "model")}

    async def _set_metadata(self, request: Request) -> dict[str, Any]:
        record = await self._sessions.resolve(request.target())
        metadata = request.params().get("metadata")
        if not isinstance(metadata, dict):
            raise InvalidParams(f"params of {request.method}: metadata must be an object")
        merged = {**record.metadata, **metadata}
        record.metadata = {name: value for name, value in merged.items() if value is not None}
        title = metadata.get("title", record.title)
        if isinstance(title, str | None):
            record.title = title
        self._sessions.describe_anew(record)
        return {"metadata": record.metadata}

    async def _take_back(self, request: Request) -> dict[str, Any]:
        record = await self._sessions.resolve(request.target())
        return {"takenBack": self._sessions.take_back(record, request.read(_Queued).prompt_id)}

    async def _terminate(self, request: Request) -> dict[str, Any]:
        await self._sessions.end.terminate(await self._sessions.resolve(request.target()))
        return {"terminated": True}

    async def _get(self, request: Request) -> dict[str, Any]:
        return session_info(await self._sessions.look_up(request.target()))

    async def _list(self, request: Request) -> dict[str, Any]:
        """One page. An agent may be named in our `_meta`, or beside `cwd` where the method is ours."""
        wanted = request.read(_Listing)
        agent = wanted.agent or request.ours().agent
        matching = SessionFilter(cwd=wanted.cwd, agent=None if agent is None else AgentId(agent), is_ended=wanted.ended)
        page = await self._sessions.page(matching, cursor=wanted.cursor, limit=wanted.limit)
        answer: dict[str, Any] = {"sessions": [session_info(record) for record in page.sessions]}
        if page.unreadable:
            unreadable = [{"agent": key.agent, "sessionId": key.session} for key in page.unreadable]
            answer["_meta"] = {META: {"unreadable": unreadable}}
        return answer if page.next_cursor is None else {**answer, "nextCursor": page.next_cursor}

    async def _search(self, request: Request) -> SearchResult:
        return await self._sessions.search.find(request.read(SearchWanted))

    async def _events(self, request: Request) -> dict[str, Any]:
        wanted = request.read(EventsWanted)
        record = await self._sessions.look_up(request.target())
        return await self._sessions.history.page(record, wanted, is_correlated=request.connection.is_correlated)
